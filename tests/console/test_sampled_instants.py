"""At any instant of a run that people and bad luck change, its replay shows what was shown live."""

from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.support.consoles import settled
from tests.support.instants import Instant, instant, instant_of
from tests.support.paced_runs import PacedRun, paced_run
from tests.support.still_clock import StillClock
from vertumnus.actions.server import ActionServer
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import OperatorActed, RankLost
from vertumnus.domain.orders import CloseTransition, Transfer
from vertumnus.records.log import read_log
from vertumnus.run import attended, narration
from vertumnus.run.audit import audit_run
from vertumnus_console import feed as feed_module
from vertumnus_console import keyframes
from vertumnus_console import player as player_module
from vertumnus_console.desk import Desk
from vertumnus_console.feed import Feed
from vertumnus_console.player import Player
from vertumnus_console.replay import Replay

WORDS = ("controller=thresholds", "cache=vertumnus", "cache.scan_interval_s=2", "workload.requests=600")
EVENTS = 1_500
"""Half of the run's, among which the samples lie."""
SAMPLES = 50
STEP_S = 0.02
"""What passes at once, when run and console have done what there was to do until then [s]."""


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[ActionServer]:
    """The action servers of the runs to come: what they post, the engines take for the world's."""
    opened: list[ActionServer] = []

    class Kept(ActionServer):
        def __init__(self, *words: object) -> None:
            super().__init__(*words)
            opened.append(self)

    monkeypatch.setattr(attended, "ActionServer", Kept)
    return opened


class Script:
    """What happens to the run, by the events that the console has read."""

    def __init__(self, going: PacedRun, lose: Callable[[RankLost], None]) -> None:
        ann, bob = going.client("ann"), going.client("bob")
        self._left: deque[tuple[int, Callable[[], object]]] = deque(
            [
                (100, lambda: ann.act("merge", (CpGroup(32, 2), CpGroup(34, 2)))),
                (180, lambda: bob.act("drain", (CpGroup(0, 4),))),
                (260, lambda: ann.act("tune", setting="policy.beta", value=2.0)),
                (340, lambda: lose(RankLost(0, 30, 0, "unplugged"))),
                (420, lambda: bob.act("merge", (CpGroup(36, 2), CpGroup(38, 2)))),
                (500, lambda: bob.act("reopen", (CpGroup(0, 4),))),
                (580, lambda: ann.act("undo")),
                (660, lambda: ann.act("split", (CpGroup(32, 4),))),
                (740, lambda: bob.act("auto")),
                (900, lambda: bob.act("off")),
            ]
        )

    def go_on(self, events: int) -> None:
        """Do what is due after *events* events."""
        while self._left and self._left[0][0] <= events:
            self._left.popleft()[1]()


def shown_live(going: PacedRun, clock: StillClock, script: Script, seed: int) -> list[Instant]:
    """What a console's feed shows at its first event, at random ones, and when the run is over."""
    feed = Feed(Player(going.run, speed=1.0), Desk(going.run.actions, "ann", reads_only=True))
    feed.start()
    seen = [feed.answer(instant).result(30)]
    for due in sorted(Random(seed).sample(range(1, EVENTS), SAMPLES)):
        while (events := feed.answer(_events).result(30)) < due and feed.answer(_is_going).result(30):
            script.go_on(events)
            if clock.is_awaited and feed.answer(_has_caught_up).result(30):
                clock.let_pass(STEP_S)
        seen.append(feed.answer(instant).result(30))
    going.finish()
    while feed.latest is None or feed.latest.is_live or feed.latest.end_ns is None:
        feed.answer(_events).result(30)
    seen.append(feed.answer(instant).result(30))
    feed.stop()
    return seen


def _events(player: Player) -> int:
    return player.replay.events


def _has_caught_up(player: Player) -> bool:
    return player.replay.is_at_end


def _is_going(player: Player) -> bool:
    return player.is_live or not player.replay.is_at_end


@pytest.mark.parametrize("seed", [0])
def test_the_replay_shows_what_was_shown_live(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: list[ActionServer], seed: int
) -> None:
    """Event by event, and sought by time in any order; on every screen, from before the first to the end."""
    monkeypatch.setattr(narration, "FLUSH_S", 0.0)  # when the run waits, all that it did is there to be read
    monkeypatch.setattr(feed_module, "INTERVAL_S", 0.005)
    monkeypatch.setattr(player_module, "EVENTS_A_TURN", 7)
    monkeypatch.setattr(keyframes, "FIRST_EVENTS", 200)
    clock = StillClock()
    with paced_run(tmp_path, *WORDS, speed=1.0, clock=clock) as going:
        seen = shown_live(going, clock, Script(going, lambda fact: servers[0]._post(fact)), seed)
    replay, whole = Replay(going.run.log), []
    for live in seen:
        replay.advance(None, live.events - replay.events)
        assert instant_of(replay) == live
        following = replay._next()
        if live.events and (following is None or following.at > live.now_ns):
            whole.append(live)  # all that happened at its instant
    assert replay.is_at_end and len({live.events for live in seen}) > 0.8 * SAMPLES
    replay.close()
    player = Player(going.run, speed=1.0)
    for live in Random(seed).sample(whole, len(whole)):
        player.go_to(live.now_ns + 1)
        assert instant(settled(player)) == live
    assert len(player.replay._keyframes) >= 5 and len(whole) > 0.6 * SAMPLES
    player.close()
    kinds = Counter(type(record.body) for record in read_log(going.run.log).records)
    assert kinds[RankLost] == 1 and kinds[CloseTransition] >= 3 and kinds[OperatorActed] >= 10
    assert kinds[Transfer] > 0
    assert audit_run(going.run).is_clean
