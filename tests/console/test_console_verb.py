"""The verb that starts the console: what it refuses, and what it starts."""

import subprocess
import sys
from pathlib import Path

import pytest

from vertumnus.cli import main
from vertumnus.commandline import console


def test_without_textual_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A base install names the extra and exits 2."""
    monkeypatch.setattr(console, "find_spec", lambda name: None)
    assert main(["console"]) == 2
    assert "pip install 'vertumnus[console]'" in capsys.readouterr().err


def test_without_a_terminal_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Into a pipe nothing is drawn; exit 2."""
    assert main(["console"]) == 2
    assert "stdout is not a terminal" in capsys.readouterr().err


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "inf", "nan"])
def test_a_speed_that_is_none_is_refused(speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the flag, what was found and what is allowed."""
    assert main(["console", f"--speed={speed}"]) == 2
    assert f"--speed: found {speed}, must be a number above 0" in capsys.readouterr().err


def test_it_starts_the_application_with_the_same_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words go on as they are, and the application's exit code comes back."""
    started = []
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(subprocess, "call", lambda words: started.append(words) or 7)
    assert main(["console", "01ABC", "--speed", "20"]) == 7
    assert started == [[sys.executable, "-P", "-m", "vertumnus_console", "01ABC", "--speed", "20"]]


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("--at=-1", "--at: found -1, must be seconds from the run's start, at least 0"),
        ("--at=nan", "--at: found nan, must be"),
        ("--size=79x24", "--size: found 79x24, must be from 80x24 to 500x200, as 160x48"),
        ("--size=big", "--size: found big, must be"),
    ],
)
def test_a_flag_that_makes_no_sense_is_refused(
    flag: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names the flag, what was found and what is allowed."""
    assert main(["console", flag]) == 2
    assert why in capsys.readouterr().err


def test_pictures_need_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Into a pipe, or without anybody there, pictures are drawn all the same."""
    monkeypatch.setattr(subprocess, "call", lambda words: 0)
    assert main(["console", "--pictures", "somewhere"]) == 0


def test_what_lies_in_the_folder_does_not_pass_for_the_console(tmp_path: Path) -> None:
    """Somebody works in a folder with modules of these names, another checkout of it for one."""
    for name in ("vertumnus", "vertumnus_console", "textual"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)")
    words = ["console", "--pictures", "new", "--runs-dir", "."]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "vertumnus", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr[:15]) == (2, "error: no run i")
