"""The pictures in the documents are those that the console draws now."""

import re
from pathlib import Path
from typing import get_args

import pytest

from vertumnus.records.run_dir import RunDir
from vertumnus_console.__main__ import main
from vertumnus_console.pictures import PICTURES
from vertumnus_console.saving import text_of_svg
from vertumnus_console.showcase import showcase
from vertumnus_console.view import State

ROOT = Path(__file__).parents[2]
PICTURED = ROOT / "docs" / "pictures"


def words(picture: Path) -> set[str]:
    """The words on a picture; numbers, the run's letters and what workers are doing aside."""
    text = re.sub("…[0-9A-Z]{6}", "", text_of_svg(picture.read_text()))
    return set(re.findall("[A-Za-z]{2,}", text)) - set(get_args(State))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pictures as they are drawn now."""
    folder = tmp_path_factory.mktemp("pictures")
    showcase(folder)
    return folder


def test_the_pictures_are_current(drawn: Path) -> None:
    """``make pictures`` would change no word on any of them."""
    assert {file.name for file in PICTURED.glob("*.svg")} == {file.name for file in drawn.iterdir()}
    changed = {
        file.name: words(file) ^ words(PICTURED / file.name)
        for file in sorted(drawn.iterdir())
        if words(file) != words(PICTURED / file.name)
    }
    assert not changed, f"make pictures draws them anew: {changed}"


def test_every_picture_is_shown() -> None:
    """A document shows each of them, and none that is not there; nothing on them is loaded from elsewhere."""
    shown: set[str] = set()
    for document in (ROOT / "README.md", ROOT / "docs" / "console.md"):
        shown |= set(re.findall(r"pictures/(\w+\.svg)", document.read_text()))
    assert shown == {file.name for file in PICTURED.iterdir()}
    assert not any('url("http' in file.read_text() for file in PICTURED.iterdir())


def test_pictures_of_any_run(
    recorded_run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal every screen is drawn at the instant and in the size that were asked for."""
    words = ["--runs-dir", str(recorded_run.path.parent), "--at", "4", "--size", "80x24", "--light"]
    assert main([recorded_run.run_id, *words, "--pictures", str(tmp_path / "new")]) == 0
    files = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [file.stem for file in files] == [*(picture.name for picture in PICTURES), "preview"]
    overview = text_of_svg(files[0].read_text()).splitlines()
    assert len(overview) == 24 and "0:04.0" in overview[0]
    assert "merge 32x2 + 34x2" in text_of_svg(files[-1].read_text())
    kept = files[0].read_bytes()
    assert main([recorded_run.run_id, *words, "--pictures", str(tmp_path / "new")]) == 2
    assert "new has overview.svg, worker.svg" in capsys.readouterr().err and files[0].read_bytes() == kept
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    assert main([recorded_run.run_id, *words, "--pictures", str(in_the_way)]) == 2
    assert f"--pictures: found {in_the_way}, which is a file" in capsys.readouterr().err
