"""Going back by kept states shows what replaying from the start shows."""

from random import Random

import pytest

from tests.support.consoles import settled
from tests.support.instants import instant_of
from vertumnus.records.run_dir import RunDir
from vertumnus_console import keyframes
from vertumnus_console import player as player_module
from vertumnus_console.player import Player
from vertumnus_console.replay import Replay


def after(run: RunDir, events: int) -> Replay:
    """A replay from the start that took *events* events."""
    replay = Replay(run.log)
    replay.advance(None, events)
    return replay


@pytest.mark.parametrize("seed", range(3))
def test_a_kept_state_is_the_state(recorded_run: RunDir, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Sought from anywhere, an instant shows the same with keyframes and without."""
    monkeypatch.setattr(keyframes, "FIRST_EVENTS", 100)
    monkeypatch.setattr(player_module, "EVENTS_A_TURN", 20)
    player = settled(Player(recorded_run, speed=1.0))
    assert len(player.replay._keyframes) >= 8
    random = Random(seed)
    for _ in range(6):
        player.seek(random.randint(-20, 20))
        settled(player)
        fresh = after(recorded_run, player.replay.events)
        assert instant_of(player.replay) == instant_of(fresh)
        assert player.replay.pool.books().problems == ()
        fresh.close()
    player.close()


def test_going_back_reads_little_again(recorded_run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keyframes grow sparse, and one step back replays no more than a fifth of the way."""
    monkeypatch.setattr(keyframes, "FIRST_EVENTS", 100)
    monkeypatch.setattr(player_module, "EVENTS_A_TURN", 20)
    player = settled(Player(recorded_run, speed=1.0))
    events = player.replay.events
    player.replay.go_before((player.replay.now_ns or 0) - 1)
    assert events > player.replay.events > 0.75 * events
    player.close()
