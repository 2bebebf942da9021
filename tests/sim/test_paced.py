"""A paced run is the same run, held back: what each event waits for, and what is posted meanwhile."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import a_profile
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import OperatorActed, TimerFired
from vertumnus.domain.jobs import HandoffJob, StopJob
from vertumnus.domain.units import SECOND
from vertumnus.serving.engine import WaitingEngine
from vertumnus.sim.config import SimConfig
from vertumnus.sim.durations import Durations
from vertumnus.sim.engine import SimEngine
from vertumnus.sim.paced import LONGEST_WAIT_S, PacedEngine

WISH = OperatorActed(0, 1, "ann", "split", (CpGroup(0, 4),))


class FakeWall:
    """A wall clock that only waiting moves."""

    def __init__(self) -> None:
        self.at_s = 100.0
        self.waits: list[float] = []
        self.woken = 0
        self.on_wait = lambda: None

    def now_s(self) -> float:
        """The time now."""
        return self.at_s

    def wait(self, seconds: float) -> None:
        """Let the time pass, after whatever somebody does meanwhile."""
        self.waits.append(seconds)
        self.at_s += seconds
        self.on_wait()

    def wake(self) -> None:
        """Count it."""
        self.woken += 1


def paced(speed: float, *timers_s: float) -> tuple[PacedEngine, FakeWall]:
    """An engine with timers at these virtual seconds."""
    wall = FakeWall()
    engine = PacedEngine(SimEngine(Durations(a_profile(), 0, 0.0)), speed, wall)
    for at_s in timers_s:
        at_ns = round(at_s * SECOND)
        engine.schedule(TimerFired(at_ns, "t", at_ns), at_ns)
    return engine, wall


def test_events_come_when_the_wall_clock_has_come_that_far() -> None:
    """At speed 20, virtual 10 s and 30 s come after 0.5 s and 1.5 s of the wall clock."""
    engine, wall = paced(20.0, 10, 30)
    assert engine.next().at == 10 * SECOND and wall.at_s == pytest.approx(100.5)
    assert engine.next().at == 30 * SECOND and wall.at_s == pytest.approx(101.5)
    assert engine.next() is None
    assert max(wall.waits) == LONGEST_WAIT_S
    assert isinstance(engine, WaitingEngine)


def test_the_speed_changes_between_two_events() -> None:
    """After 0.2 s at speed 10, speed 40 takes the remaining 8 s in 0.2 s; what is passed stays passed."""
    engine, wall = paced(10.0, 10)
    wall.on_wait = lambda: engine.pace.set_speed(40.0)
    assert engine.next().at == 10 * SECOND
    assert wall.at_s == pytest.approx(100.4)
    assert wall.woken == len(wall.waits)


def test_a_held_run_takes_wishes() -> None:
    """At speed 0 time stands still, and what is posted comes at once, at that time."""
    engine, wall = paced(10.0, 10)
    engine.pace.set_speed(0.0)
    turns = []

    def in_the_third_wait() -> None:
        turns.append(wall.at_s)
        if len(turns) == 3:
            engine.post(WISH)

    wall.on_wait = in_the_third_wait
    assert engine.next() == WISH
    assert len(turns) == 3 and engine.now() == 0
    wall.on_wait = lambda: engine.pace.set_speed(10.0)
    assert engine.next().at == 10 * SECOND


@given(st.floats(0.5, 100.0), st.floats(0.0, 1.0))
def test_a_wish_gets_the_time_at_which_it_came(speed: float, waited_s: float) -> None:
    """Posted in a wait, it is told at the virtual time reached, never after what is to come."""
    engine, wall = paced(speed, 1_000)
    wall.at_s += waited_s
    engine.post(WISH)
    told = engine.next()
    assert told.who == "ann" and told.at == pytest.approx(
        min(waited_s * speed, 1_000) * SECOND, abs=SECOND // 1000
    )
    assert engine.next().at == 1_000 * SECOND


def test_what_is_due_already_does_not_keep_a_wish_waiting() -> None:
    """A run behind its pace tells a wish before the backlog, at the time of the backlog's first."""
    engine, wall = paced(10.0, 1, 2, 3)
    wall.at_s += 0.32
    assert engine.next().at == SECOND
    engine.post(WISH)
    assert [engine.next().at for _ in range(3)] == [2 * SECOND, 2 * SECOND, 3 * SECOND]


def test_a_machine_that_slept_does_not_rush() -> None:
    """An hour behind, the next event comes at once and the one after it a virtual second later."""
    engine, wall = paced(1.0, 1, 2)
    wall.at_s += 3_600
    engine.next()
    before = wall.at_s
    engine.next()
    assert wall.at_s - before == pytest.approx(1.0)


def test_before_each_wait_somebody_may_do_something() -> None:
    """It is called once a wait, and five times a second at least."""
    engine, wall = paced(1.0, 2)
    calls = []
    engine.before_wait = lambda: calls.append(wall.at_s)
    engine.next()
    assert len(calls) == len(wall.waits) >= 10


def test_a_stopped_decode_holds_nothing_up() -> None:
    """Of a decode that was stopped no end remains to wait for."""
    engine, _ = paced(1.0)
    engine.submit(HandoffJob(1, 0, 0, CpGroup(0, 2), 0, 1_000, 4, ()))
    engine.next()
    engine.submit(StopJob(1, 0))
    told = list(iter(engine.next, None))
    assert engine.now() == told[-1].at and sum(type(each).__name__ == "DecodeDone" for each in told) == 1


def test_another_thread_wakes_the_machine_s_clock() -> None:
    """Held for good, the engine gives back what another thread posts."""
    engine = PacedEngine(SimEngine(Durations(a_profile(), 0, 0.0)), 1.0)
    engine.pace.set_speed(0.0)
    engine.schedule(TimerFired(SECOND, "t", SECOND), SECOND)
    poster = threading.Thread(target=engine.post, args=(WISH,))
    engine.before_wait = lambda: None if poster.ident else poster.start()
    assert engine.next().who == "ann"
    poster.join()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"speed": 2.0}, "speed must be null with clock=fast"),
        ({"clock": "paced", "speed": 0.0}, "speed must be above 0, got 0.0"),
        ({"clock": "paced", "speed": 2e6}, "speed must be at most 1,000,000, got 2e\\+06"),
        ({"clock": "paced", "speed": float("nan")}, "speed must be above 0, got nan"),
    ],
)
def test_a_speed_must_mean_something(settings: dict, problem: str) -> None:
    """Without a pace a speed would be ignored, and a pace needs one above 0."""
    with pytest.raises(ValueError, match=problem):
        SimConfig(**settings)
