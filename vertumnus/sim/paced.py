"""The simulated backend at a watchable speed: the same events at the same virtual times, each held back
until the wall clock has come that far. Nothing of a run depends on its pace but what people post into it.
"""

from collections import deque
from collections.abc import Callable

from vertumnus.domain.facts import InputFact
from vertumnus.domain.jobs import AnyJob, AnyOutcome
from vertumnus.domain.units import Nanoseconds
from vertumnus.sim.engine import SimEngine
from vertumnus.sim.pace import Pace, SystemClock, WallClock

LONGEST_WAIT_S = 0.2
"""A wait is looked after at least this often: five wake-ups a second cost nothing."""


class PacedEngine:
    """An `Engine` that lets a `SimEngine` go no faster than its `pace`."""

    def __init__(self, engine: SimEngine, speed: float, wall: WallClock | None = None) -> None:
        """Hold *engine* to *speed* virtual seconds a second of the *wall* clock, by default the machine's."""
        self._engine = engine
        self._wall = wall or SystemClock()
        self._posted: deque[InputFact] = deque()
        self.pace = Pace(speed, self._wall)
        self.before_wait: Callable[[], object] = _nothing
        """Called before each wait, at least every `LONGEST_WAIT_S`: what must not stay behind meanwhile."""

    def now(self) -> Nanoseconds:
        """Return the virtual time of what was delivered last [ns]."""
        return self._engine.now()

    def schedule(self, fact: InputFact, at_ns: Nanoseconds) -> None:
        """Deliver *fact* at *at_ns*, or at once when that has passed."""
        self._engine.schedule(fact, at_ns)

    def submit(self, job: AnyJob) -> None:
        """Start *job*."""
        self._engine.submit(job)

    def next(self) -> InputFact | AnyOutcome | None:
        """Return what happens next, once the wall clock has come that far; None when nothing is to come."""
        while True:
            self._admit()
            at_ns = self._engine.next_ns
            if at_ns is None:
                return None
            wait_s = self.pace.wait_s(at_ns)
            if wait_s == 0.0:
                return self._engine.next()
            self.before_wait()
            self._wall.wait(LONGEST_WAIT_S if wait_s is None else min(wait_s, LONGEST_WAIT_S))

    def post(self, fact: InputFact) -> None:
        """Deliver *fact* as soon as possible, also while the run is held; safe from another thread."""
        self._posted.append(fact)
        self._wall.wake()

    def close(self) -> None:
        """Nothing was started."""

    def _admit(self) -> None:
        while self._posted:
            next_ns = self._engine.next_ns
            reached = self.pace.reached()
            # before what is to come, at the time that the wall clock says; `schedule` keeps it from the past
            at_ns = reached if next_ns is None else min(reached, next_ns)
            self._engine.schedule(self._posted.popleft(), at_ns)


def _nothing() -> None:
    """What is done before a wait unless somebody asks for more."""
