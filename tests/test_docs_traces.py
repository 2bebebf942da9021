"""The page on traces: every command in it runs, and prints what the page shows."""

import re
import shlex
from pathlib import Path

import pytest

from vertumnus.cli import main
from vertumnus_profiling.size.__main__ import main as size

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"^```\n(\$ .*?)^```$", (ROOT / "docs/traces.md").read_text(), re.DOTALL | re.MULTILINE)


def _commands(block: str) -> list[tuple[str, str]]:
    """Return each command of a block with the output that is shown below it."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


@pytest.mark.parametrize("block", BLOCKS, ids=[block.partition("\n")[0][2:40] for block in BLOCKS])
def test_a_block_of_the_page_prints_what_it_shows(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run in an empty folder beside the samples; ``cat`` makes the file that it shows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for command, shown in _commands(block):
        program, *words = shlex.split(command)
        if program == "cat":
            Path(words[0]).write_text(shown)
            continue
        assert program == "vertumnus"
        code = size(words[1:]) if words[0] == "size" else main(words)
        out, err = capsys.readouterr()
        assert code == 0 or (words[:2] == ["trace", "lint"] and shown), err
        if shown:
            assert _lines(out + err) == _lines(shown)


def test_the_page_shows_every_verb() -> None:
    """Each verb of ``trace`` has a command on the page, and ``size`` one."""
    verbs = {command.split()[2] for block in BLOCKS for command, _ in _commands(block) if "trace" in command}
    assert {"lint", "stats", "convert", "download", "capture"} <= verbs
    assert any(command.startswith("vertumnus size") for block in BLOCKS for command, _ in _commands(block))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
