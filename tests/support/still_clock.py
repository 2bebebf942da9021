"""A wall clock for paced runs that stands until a test lets time pass: no machine is too slow or too fast."""

from collections.abc import Callable
from threading import Event, Lock

from vertumnus.sim.pace import SLACK_S

MOST_S = 0.9 * SLACK_S
"""Further behind, a run would take it for a sleep of the machine and go on from where it is [s]."""
LITTLE_S = 0.1
"""What passes between two looks of somebody who waits [s]."""


class StillClock:
    """A `WallClock` whose time is the test's."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._lock = Lock()
        self._bell = Event()
        self.is_awaited = False
        """Whether the run has done all that there was to do by now, and waits."""

    def now_s(self) -> float:
        """Return what has passed [s]."""
        return self._now_s

    def wait(self, seconds: float) -> None:
        """Wait until time passes or somebody wakes the run; look up after *seconds* of the machine's."""
        self.is_awaited = True
        self._bell.wait(seconds)
        self.is_awaited = False
        self._bell.clear()

    def wake(self) -> None:
        """End the wait."""
        self._bell.set()

    def let_pass(self, seconds: float) -> None:
        """Let *seconds* pass, `MOST_S` at most."""
        assert seconds <= MOST_S, f"{seconds} s at once are more than {MOST_S}"
        with self._lock:
            self._now_s += seconds
        self.is_awaited = False
        self.wake()


def passing(clock: StillClock | None, condition: Callable[[], bool]) -> Callable[[], bool]:
    """Return *condition* that lets a little time pass each time that it does not hold and the run waits."""

    def condition_or_later() -> bool:
        holds = condition()
        if not holds and clock is not None and clock.is_awaited:
            clock.let_pass(LITTLE_S)
        return holds

    return condition_or_later
