"""The pages of docs/ with commands: every one runs, in its order, and prints what the page shows."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from vertumnus.cli import main
from vertumnus_profiling.size.__main__ import main as size

ROOT = Path(__file__).parents[1]
ULID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")


def blocks(page: str) -> list[str]:
    """Return the blocks of *page* that begin with a command."""
    return re.findall(r"^```\n(\$ .*?)^```$", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)


def commands(block: str) -> list[tuple[str, str]]:
    """Return each command of *block* with the output that is shown below it."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def carry_out(command: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Do *command* in the current folder; what it prints is what is *shown*, where anything is."""
    program, *words = shlex.split(command)
    if program == "cat":  # makes the file that it shows
        Path(words[0]).write_text(shown)
        return
    assert program == "vertumnus"
    code = size(words[1:]) if words[0] == "size" else main(words)
    out, err = capsys.readouterr()
    assert code == 0 or (words[:2] == ["trace", "lint"] and shown), err
    if shown:
        told = lines(out + err if words[0] == "trace" else out)
        assert told == lines(shown), command


def lines(text: str) -> list[str]:
    """Return *text* by lines, run ids alike."""
    return [ULID.sub("RUN", line.rstrip()) for line in text.strip().splitlines()]


def a_case(block: str) -> Any:
    """Return the test of *block*: one that sizes simulates for a while."""
    marks = [pytest.mark.long] if "vertumnus size" in block else []
    return pytest.param(block, id=block.partition("\n")[0][2:40], marks=marks)


@pytest.mark.parametrize("block", [a_case(block) for block in blocks("traces.md")])
def test_a_block_of_the_page_on_traces(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an empty folder beside the samples."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for command, shown in commands(block):
        carry_out(command, shown, capsys)


@pytest.mark.long  # runs of sweeps are processes of their own
@pytest.mark.timeout(600)
def test_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One block after the other in one folder."""
    monkeypatch.chdir(tmp_path)
    for block in blocks("guide.md"):
        for command, shown in commands(block):
            carry_out(command, shown, capsys)


def test_the_page_on_traces_shows_every_verb() -> None:
    """Each verb of ``trace`` has a command on the page, and ``size`` one."""
    found = [command for block in blocks("traces.md") for command, _ in commands(block)]
    verbs = {command.split()[2] for command in found if command.startswith("vertumnus trace")}
    assert {"lint", "stats", "convert", "download", "capture"} <= verbs
    assert any(command.startswith("vertumnus size") for command in found)


def test_the_preview_in_the_readme_is_of_the_pool_to_practise_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Typed as it stands there, on the run of the console's chapter as far as the instant that it names."""
    (command,) = re.findall(r"^(vertumnus preview .*?)\s+#", (ROOT / "README.md").read_text(), re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    assert main(["+experiment=reconfigure", "workload.requests=1100"]) == 0
    capsys.readouterr()
    carry_out(command, "", capsys)


def test_what_the_guide_names_is_there() -> None:
    """Files and folders of the package that it tells people to look at."""
    text = (ROOT / "docs/guide.md").read_text()
    named = re.findall(r"`((?:vertumnus|conf)/[\w/.]*[\w/])`", text)
    assert len(named) >= 5
    assert [name for name in named if not (ROOT / name).exists() and "NAME" not in name] == []
    assert all((ROOT / "docs" / page).exists() for page in re.findall(r"\]\((\w+\.md)\)", text))
