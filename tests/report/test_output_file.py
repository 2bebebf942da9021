"""Files that a flag names: looked at before any work, and never replaced unasked."""

from pathlib import Path

import pytest

from tests.support.recorded import a_changing_history, a_run, a_ulid
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.report.output_file import file_problems


def test_all_that_is_wrong_with_a_file_is_told(tmp_path: Path) -> None:
    """Its ending, its folder; a folder of that name cannot be replaced."""
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "there.png").touch()

    def told(name: str, replace: bool = False) -> list[str]:
        found = file_problems("--x", tmp_path / name, (".png", ".svg"), replace=replace)
        return [problem.replace(str(tmp_path), ".") for problem in found]

    assert told("new.svg") == told("there.png", replace=True) == []
    assert told("none/a.gif") == [
        "--x: found ./none/a.gif, its name must end in one of .png, .svg",
        "--x: found ./none/a.gif, but there is no folder ./none",
    ]
    assert told("there.png") == ["--x: ./there.png is there already; --force replaces it"]
    assert told("folder.png", replace=True) == ["--x: found ./folder.png, which is a folder"]


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["report", "--perfetto"], "mine.json"),
        (["report", "reconfig_timeline", "--figure"], "mine.svg"),
        (["trace", "stats", "generator=l_eval", "requests=20", "--figure"], "mine.svg"),
    ],
)
def test_a_file_is_replaced_only_when_asked(
    words: list[str],
    file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every verb that draws or writes a picture or a timeline says how, and leaves what is there as it is."""
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    a_run(tmp_path / "runs", a_ulid(1), a_changing_history())
    Path(file).write_text("mine")
    assert main([*words, file]) == BAD_INPUT
    assert f"{words[-1]}: {file} is there already; --force replaces it" in capsys.readouterr().err
    assert Path(file).read_text() == "mine"
    assert main([*words, file, "--force"]) == OK
    assert Path(file).read_text() != "mine"


def test_force_alone_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It belongs to a file."""
    assert main(["report", "--force", "--runs-dir", str(tmp_path)]) == BAD_INPUT
    assert "--force: has no effect without --figure or --perfetto" in capsys.readouterr().err
