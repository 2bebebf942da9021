"""Where runs go and are looked for: a folder, or a message that names the key."""

from pathlib import Path

import pytest

from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK

RUN = ("+experiment=tool_agent", "backend=sim", "workload.requests=60", "arrival.rate=5")


def test_no_name_is_refused(tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing lands in the folder that one stands in."""
    monkeypatch.chdir(tmp_path)
    assert main([*RUN, "runs_dir="]) == BAD_INPUT
    assert "error: runs_dir: found '', must name a folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "/runs", "/deep/er"])
def test_a_file_is_no_folder(below: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor is anything below one; the file is named and stays as it is."""
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    assert main([*RUN, f"runs_dir={file}{below}"]) == BAD_INPUT
    assert f"runs_dir: found {file}{below}, but {file} is a file" in capsys.readouterr().err
    assert file.read_text() == "mine"


@pytest.mark.parametrize("words", [("runs",), ("sql", "SELECT 1")])
def test_a_folder_that_is_named_must_be_there(
    words: tuple[str, ...], tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slip in --runs-dir is no empty answer; the default folder may be missing before the first run."""
    monkeypatch.chdir(tmp_path)
    assert main([*words, "--runs-dir", "rusn"]) == BAD_INPUT
    assert "error: --runs-dir: found rusn, which is no folder" in capsys.readouterr().err
    assert main(list(words)) == OK
