"""Virtual time: what comes next, in which order, and what a stop leaves behind."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import a_prefill_time, a_profile
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import TimerFired
from vertumnus.domain.jobs import (
    CopyDone,
    CopyJob,
    DecodeDone,
    FirstToken,
    HandoffDone,
    HandoffJob,
    StepDone,
    StepJob,
    StepWork,
    StopJob,
)
from vertumnus.sim.durations import Durations
from vertumnus.sim.engine import SimEngine

PAIR = CpGroup(0, 2)
MS = 1_000_000


def an_engine() -> SimEngine:
    """An engine whose jobs take exactly what the toy profile predicts."""
    return SimEngine(Durations(a_profile(), 0, 0.0))


def a_hand_off(output_tokens: int = 4, job_id: int = 1) -> HandoffJob:
    """1,000 tokens: 2 ms of copy, then 2 ms a token."""
    return HandoffJob(job_id, 0, 0, PAIR, 0, 1_000, output_tokens, ())


def drain(engine: SimEngine) -> list:
    """Return everything that is still to come."""
    return list(iter(engine.next, None))


def test_a_step_ends_after_its_prediction() -> None:
    """Submitted at 5 ms, done at 5 ms + E, which it also tells as its compute time."""
    engine = an_engine()
    engine.schedule(TimerFired(5 * MS, "t", 5 * MS), 5 * MS)
    engine.next()
    engine.submit(StepJob(9, PAIR, 0, (StepWork(0, 0, 100, 32, ()),)))
    took = a_prefill_time().predict(2, 68, 32)
    assert drain(engine) == [StepDone(5 * MS + took, 9, took)]
    assert engine.now() == 5 * MS + took


def test_a_hand_off_has_three_outcomes() -> None:
    """Copy at 2 ms, first token a step later, the fourth and last token after four steps."""
    engine = an_engine()
    engine.submit(a_hand_off())
    assert drain(engine) == [HandoffDone(2 * MS, 1), FirstToken(4 * MS, 1), DecodeDone(10 * MS, 1, 4)]


def test_one_output_token_ends_with_the_first() -> None:
    """First token and end fall together, in this order (case 9)."""
    engine = an_engine()
    engine.submit(a_hand_off(output_tokens=1))
    assert drain(engine)[1:] == [FirstToken(4 * MS, 1), DecodeDone(4 * MS, 1, 1)]


def stopped_at(at_ns: int) -> list:
    """Return what an engine tells of a hand-off of four tokens that is stopped at *at_ns*."""
    engine = an_engine()
    engine.submit(a_hand_off())
    engine.schedule(TimerFired(at_ns, "stop", at_ns), at_ns)
    told = []
    for event in iter(engine.next, None):
        told.append(event)
        if type(event) is TimerFired:
            engine.submit(StopJob(1, 0))
    return [event for event in told if type(event) is DecodeDone]


def test_a_stop_ends_the_job_now_with_what_was_made() -> None:
    """Before the copy nothing was made, at 7.5 ms two tokens were; the end is told once."""
    assert stopped_at(MS) == [DecodeDone(MS, 1, 0)]
    assert stopped_at(7 * MS + MS // 2) == [DecodeDone(7 * MS + MS // 2, 1, 2)]
    assert stopped_at(8 * MS) == [DecodeDone(8 * MS, 1, 3)]


def test_a_stop_that_comes_too_late_changes_nothing() -> None:
    """After the last token, or for an unknown job, there is nothing to stop."""
    assert stopped_at(11 * MS) == [DecodeDone(10 * MS, 1, 4)]
    engine = an_engine()
    engine.submit(StopJob(5, 0))
    assert drain(engine) == []


def test_a_job_is_stopped_once() -> None:
    """Two stops of one job end it once."""
    engine = an_engine()
    engine.submit(a_hand_off())
    engine.submit(StopJob(1, 0))
    engine.submit(StopJob(1, 0))
    assert [event for event in drain(engine) if type(event) is DecodeDone] == [DecodeDone(0, 1, 0)]


def test_a_fact_is_told_with_its_true_time() -> None:
    """A fact made for another time carries the time of its delivery."""
    engine = an_engine()
    engine.schedule(TimerFired(0, "t", 3), 5)
    assert drain(engine) == [TimerFired(5, "t", 3)]


def test_what_is_overdue_comes_at_once() -> None:
    """A fact for a time that has passed is delivered now: the clock never goes backwards."""
    engine = an_engine()
    engine.schedule(TimerFired(10, "first", 10), 10)
    engine.next()
    engine.schedule(TimerFired(4, "late", 4), 4)
    assert drain(engine) == [TimerFired(10, "late", 4)]
    assert engine.now() == 10


def test_a_posted_fact_comes_before_later_ones() -> None:
    """Posting delivers at the present time, behind what is due now already."""
    engine = an_engine()
    engine.schedule(TimerFired(0, "now", 0), 0)
    engine.schedule(TimerFired(7, "later", 7), 7)
    engine.post(TimerFired(99, "posted", 99))
    assert [fact.name for fact in drain(engine)] == ["now", "posted", "later"]


@given(st.lists(st.integers(0, 5), max_size=30))
def test_events_come_by_time_then_by_their_scheduling(times: list[int]) -> None:
    """Equal times keep the order in which they were scheduled; None follows the last."""
    engine = an_engine()
    for number, at_ns in enumerate(times):
        engine.schedule(TimerFired(at_ns, str(number), at_ns), at_ns)
    told = [(fact.at, int(fact.name)) for fact in drain(engine)]
    assert told == sorted((at_ns, number) for number, at_ns in enumerate(times))
    assert engine.next() is None


def test_closing_twice_is_safe() -> None:
    """The contract of every engine."""
    engine = an_engine()
    engine.close()
    engine.close()


def a_copy(job_id: int, source: CpGroup, destination: CpGroup) -> CopyJob:
    """A block of one token, 1 KiB: 3 ms and 51 ns on its link."""
    return CopyJob(job_id, destination, ((0, 9),), (source,))


def test_copies_take_turns_on_each_link_in_each_direction() -> None:
    """Out of one worker, and into one, a copy follows the one before; an unrelated one does not wait."""
    engine, other, third = an_engine(), CpGroup(2, 2), CpGroup(4, 2)
    jobs = [(PAIR, other), (PAIR, third), (third, other), (other, PAIR)]
    for number, (source, destination) in enumerate(jobs):
        engine.submit(a_copy(number, source, destination))
    took = 3 * MS + 51
    done = drain(engine)
    assert [(outcome.job_id, outcome.at) for outcome in done] == [
        (0, took),
        (3, took),
        (1, 2 * took),
        (2, 2 * took),
    ]
    assert all(isinstance(outcome, CopyDone) and outcome.wire_ns == took for outcome in done)


def test_a_job_goes_on_from_where_it_must_be() -> None:
    """Begun at 1 ms, taken up at 6 ms: what should have come by then comes now, the rest when it is due."""
    engine = SimEngine(Durations(a_profile(), 0, 0.0), 6 * MS)
    engine.resume(a_hand_off(), 1 * MS)
    assert drain(engine) == [HandoffDone(6 * MS, 1), FirstToken(6 * MS, 1), DecodeDone(11 * MS, 1, 4)]
    late = SimEngine(Durations(a_profile(), 0, 0.0), 3_600_000 * MS)
    late.resume(StepJob(2, PAIR, 0, (StepWork(0, 0, 100, 32, ()),)), 0)
    assert [(type(each), each.at) for each in drain(late)] == [(StepDone, 3_600_000 * MS)]
