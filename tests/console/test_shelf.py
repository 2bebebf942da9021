"""What one console has read of a run, the next one need not read again; only what is sure to fit is taken."""

import shutil
from pathlib import Path

import pytest

from tests.support.consoles import settled
from tests.support.instants import instant_of
from vertumnus.records.run_dir import RunDir
from vertumnus_console import keyframes, replay, shelf
from vertumnus_console import player as player_module
from vertumnus_console.player import Player
from vertumnus_console.replay import Replay
from vertumnus_console.shelf import KEPT, Shelf


@pytest.fixture
def kept(recorded_run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the state of the run as a console that has left had read it."""
    monkeypatch.setattr(keyframes, "FIRST_EVENTS", 100)
    monkeypatch.setattr(replay, "WORTH_KEEPING", 50)
    monkeypatch.setattr(player_module, "EVENTS_A_TURN", 50)
    folder = tmp_path / "states"
    player = settled(Player(recorded_run, 1.0, Shelf(recorded_run.log, folder)))
    player.shelve()
    player.close()
    return folder


def taken(log: Path, folder: Path) -> int:
    """Return how many events of *log* need not be read again."""
    again = Replay(log, Shelf(log, folder))
    again.close()
    return again.events


def test_the_next_console_begins_where_one_left(recorded_run: RunDir, kept: Path) -> None:
    """It stands at the end at once, shows what a replay from the start shows, and can go back from there."""
    fresh = Replay(recorded_run.log)
    while fresh.advance(None, 500):
        pass
    player = Player(recorded_run, 1.0, Shelf(recorded_run.log, kept))
    assert player.replay.events == fresh.events and player.replay.read == 1.0
    assert instant_of(settled(player).replay) == instant_of(fresh)
    middle = (fresh.now_ns or 0) // 2
    player.go_to(middle)
    fresh.go_before(0)
    fresh.advance(middle, 1_000_000)
    assert instant_of(settled(player).replay) == instant_of(fresh)
    assert len(player.replay._keyframes) >= 5  # those before it are made on the way
    player.close()
    fresh.close()


def test_a_state_is_kept_on_the_way(recorded_run: RunDir, tmp_path: Path, monkeypatch) -> None:
    """A console that is killed leaves its last keyframe."""
    monkeypatch.setattr(keyframes, "FIRST_EVENTS", 100)
    half = Replay(recorded_run.log, Shelf(recorded_run.log, tmp_path))
    half.advance(None, 300)
    half.advance(None, 100)
    half.close()
    assert taken(recorded_run.log, tmp_path) == 400


def test_what_may_not_fit_is_not_taken(recorded_run: RunDir, kept: Path, monkeypatch) -> None:
    """A cut file, one that others may write, another log at this place, another code: all is read again."""
    (file,) = kept.glob("*.state")
    whole = file.read_bytes()
    assert taken(recorded_run.log, kept) > 0
    file.write_bytes(whole[:-1])
    assert taken(recorded_run.log, kept) == 0
    file.write_bytes(whole.replace(b"vertumnus", b"vertumbus"))  # it decodes, but cannot be loaded
    assert taken(recorded_run.log, kept) == 0
    file.write_bytes(whole)
    for path in (file, kept):
        mode = path.stat().st_mode
        path.chmod(mode | 0o020)
        assert taken(recorded_run.log, kept) == 0
        path.chmod(mode)
    assert taken(recorded_run.log, kept) > 0
    monkeypatch.setattr(shelf, "_code", lambda: "another")
    assert taken(recorded_run.log, kept) == 0


def test_another_log_at_its_place_is_read(recorded_run: RunDir, other_run: RunDir, tmp_path: Path) -> None:
    """A run's log that was replaced is known by its bytes."""
    log = tmp_path / "facts.log"
    shutil.copy(recorded_run.log, log)
    first = Replay(log, Shelf(log, tmp_path))
    first.advance(None, 300)
    first._shelf.put(first._frame())
    first.close()
    assert taken(log, tmp_path) == 300
    shutil.copy(other_run.log, log)
    assert taken(log, tmp_path) == 0


def test_few_are_kept_and_no_place_is_no_trouble(recorded_run: RunDir, tmp_path: Path) -> None:
    """The runs used last; where nothing can be written, the console goes without."""
    read = Replay(recorded_run.log)
    read.advance(None, 10)
    for number in range(KEPT + 2):
        log = tmp_path / f"{number}.log"
        shutil.copy(recorded_run.log, log)
        Shelf(log, tmp_path / "states").put(read._frame())
    assert len(list((tmp_path / "states").glob("*.state"))) == KEPT
    (tmp_path / "file").touch()
    Shelf(recorded_run.log, tmp_path / "file" / "states").put(read._frame())
    read.close()
