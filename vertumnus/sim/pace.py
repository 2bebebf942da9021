"""Virtual time held to the wall clock times a speed that may change at any moment."""

from threading import Event, Lock
from time import monotonic
from typing import Protocol

from vertumnus.domain.units import SECOND, Nanoseconds

SLACK_S = 0.5
"""A run that is further behind its pace than this [wall s] goes on from where it is: what was missed while
the machine slept or was too slow is not rushed through."""


class WallClock(Protocol):
    """Where waiting happens; tests bring their own."""

    def now_s(self) -> float:
        """Return a time that never goes backwards [s]."""

    def wait(self, seconds: float) -> None:
        """Return after *seconds*, or earlier when woken, also when that was before the wait."""

    def wake(self) -> None:
        """End the wait under way, or the next one; from any thread."""


class SystemClock:
    """The machine's monotonic clock; a wait sleeps."""

    def __init__(self) -> None:
        self._bell = Event()

    def now_s(self) -> float:
        """Return the monotonic time [s]."""
        return monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep until woken, *seconds* at most."""
        self._bell.wait(seconds)
        self._bell.clear()

    def wake(self) -> None:
        """End the sleep."""
        self._bell.set()


class Pace:
    """How far virtual time may have come; one thread runs on it, any thread may change its speed."""

    def __init__(self, speed: float, wall: WallClock) -> None:
        """Start at virtual time 0, *speed* virtual seconds a second of *wall*."""
        self._wall = wall
        self._lock = Lock()
        self._speed = speed
        self._since_s = wall.now_s()
        self._from_ns: Nanoseconds = 0

    @property
    def speed(self) -> float:
        """Virtual seconds a second; 0 while the run is held."""
        return self._speed

    def start(self) -> None:
        """Make this moment virtual time 0."""
        with self._lock:
            self._since_s, self._from_ns = self._wall.now_s(), 0

    def set_speed(self, speed: float) -> None:
        """Go on at *speed* virtual seconds a second from here; 0 holds the run. From any thread."""
        with self._lock:
            self._from_ns, self._since_s = self._reached(), self._wall.now_s()
            self._speed = speed
        self._wall.wake()

    def reached(self) -> Nanoseconds:
        """Return how far virtual time may have come by now [ns]."""
        with self._lock:
            return self._reached()

    def wait_s(self, at_ns: Nanoseconds) -> float | None:
        """Return the wall time until virtual time *at_ns* [s]; None while the run is held."""
        with self._lock:
            missing = at_ns - self._reached()
            if missing <= 0:
                self._forgive(at_ns)
                return 0.0
            return missing / SECOND / self._speed if self._speed > 0.0 else None

    def _reached(self) -> Nanoseconds:
        return self._from_ns + round((self._wall.now_s() - self._since_s) * self._speed * SECOND)

    def _forgive(self, at_ns: Nanoseconds) -> None:
        if self._reached() - at_ns > SLACK_S * self._speed * SECOND:
            self._from_ns, self._since_s = at_ns, self._wall.now_s()
