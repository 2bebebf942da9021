"""Going back by kept states shows what replaying from the start shows; live is what replay shows."""

from pathlib import Path
from random import Random

import pytest

from tests.support.consoles import settled
from tests.support.paced_runs import paced_run
from vertumnus.domain.cluster import CpGroup
from vertumnus.records.run_dir import RunDir
from vertumnus_console import keyframes
from vertumnus_console import player as player_module
from vertumnus_console.looks.decisions import decisions
from vertumnus_console.looks.model import model
from vertumnus_console.looks.queues import queues
from vertumnus_console.looks.trie import trie
from vertumnus_console.player import Player
from vertumnus_console.replay import Replay
from vertumnus_console.view import view_of

LOOKS = (queues, trie, decisions, model)


def everything(replay: Replay) -> tuple[object, ...]:
    """All that the screens show of *replay* where it stands."""
    now = replay.now_ns or 0
    view = view_of(replay.pool, replay.folds, replay.header.block_tokens, now)
    return view, *(look(replay, now) for look in LOOKS)


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
        fresh = after(recorded_run, player.replay._events)
        assert everything(player.replay) == everything(fresh)
        assert player.replay.pool.books().problems == ()
        fresh.close()
    player.close()


def test_going_back_reads_little_again(recorded_run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keyframes grow sparse, and one step back replays no more than a fifth of the way."""
    monkeypatch.setattr(keyframes, "FIRST_EVENTS", 100)
    monkeypatch.setattr(player_module, "EVENTS_A_TURN", 20)
    player = settled(Player(recorded_run, speed=1.0))
    events = player.replay._events
    player.replay.go_before((player.replay.now_ns or 0) - 1)
    assert events > player.replay._events > 0.75 * events
    player.close()


def test_replay_shows_what_the_live_console_showed(tmp_path: Path) -> None:
    """While operators act on a run, instants are looked at; its log shows the very same at each of them."""
    seen = []
    with paced_run(tmp_path) as going:
        client = going.client("ann")
        player = Player(going.run, speed=1.0)
        client.wait(client.act("merge", (CpGroup(32, 2), CpGroup(34, 2))), 30)
        client.wait(client.act("drain", (CpGroup(0, 4),)), 30)
        client.wait(client.act("speed", value=8.0), 30)
        while player.is_live and len(seen) < 12:
            settled(player)
            if not seen or player.replay._events > seen[-1][0] + 40:
                seen.append((player.replay._events, everything(player.replay)))
        client.wait(client.act("reopen", (CpGroup(0, 4),)), 30) if player.is_live else None
        going.finish()
        player.close()
    assert len(seen) >= 3
    for events, shown in seen:
        replay = after(going.run, events)
        assert everything(replay) == shown
        replay.close()
