"""A timer that is due says nothing of ranks whose answer has arrived: that is taken in first."""

from collections.abc import Iterator

import pytest

from tests.support.live_driver import PAIR, a_plan
from vertumnus.domain import jobs
from vertumnus.domain.facts import RequestCancelled, TimerFired
from vertumnus.live.control import Received
from vertumnus.live.engine import LiveEngine
from vertumnus.live.messages import Adopted, Peer, ToRank
from vertumnus.live.rank_pool import Event

HALVES = PAIR.halves
LATE = TimerFired(0, "switch 1", 0)


class Inbox:
    """Stands for the ranks: nobody is lost, and each look finds the next of *looks*."""

    def __init__(self, *looks: list[Event]) -> None:
        self._looks = [*looks]

    def is_up(self, peer: Peer) -> bool:
        return True

    def send(self, peer: Peer, body: ToRank) -> None:
        """It goes nowhere; what comes back is known."""

    def wait(self, seconds: float) -> None:
        """There is always something."""

    def events(self) -> list[Event]:
        return self._looks.pop(0)

    def close(self) -> None:
        """Nothing was started."""


def stand_in(engine: LiveEngine, *looks: list[Event]) -> None:
    """Let an inbox with *looks* stand for the engine's ranks."""
    engine._pool = engine._coordinator._pool = Inbox(*looks)  # type: ignore[assignment]


def answer(rank: int) -> Received:
    """Rank *rank*'s answer to its job of the split, whose number is the rank's."""
    return Received(Peer("prefill", rank), Adopted(rank))


@pytest.fixture
def engine() -> Iterator[LiveEngine]:
    """An engine in the middle of a split that its ranks have been told, its timer due since long ago."""
    engine = LiveEngine(a_plan(), {}.__getitem__, lambda request, tokens: None)
    stand_in(engine)
    for rank, worker in enumerate(HALVES):
        engine.submit(jobs.AdoptJob(rank, rank, worker, 1))
    engine.schedule(LATE, 0)
    yield engine
    engine.close()


def told(engine: LiveEngine, count: int) -> list[object]:
    """The next *count* things that happen, without their times."""
    facts = [engine.next() for _ in range(count)]
    return [fact.job_id if isinstance(fact, jobs.Adopted) else type(fact) for fact in facts]


def test_answers_that_have_arrived_come_before_a_timer(engine: LiveEngine) -> None:
    """The coordinator stood still for longer than the switch may take: both ranks have adopted in time."""
    stand_in(engine, [answer(0), answer(1)])
    assert told(engine, 3) == [0, 1, TimerFired]
    assert engine.next() is None


def test_a_timer_waits_for_one_look_only(engine: LiveEngine) -> None:
    """What arrives while the first look's answers are told comes after it: no stream of answers delays it."""
    stand_in(engine, [answer(0)], [answer(1)])
    assert told(engine, 3) == [0, TimerFired, 1]


def test_what_is_due_after_the_timer_stays_after_it(engine: LiveEngine) -> None:
    """A wish that was posted meanwhile is not told between the answers and the timer."""
    engine.post(RequestCancelled(0, 5, "client"))
    stand_in(engine, [answer(0), answer(1)])
    assert told(engine, 4) == [0, 1, TimerFired, RequestCancelled]
