"""What the live engine delivers at a time, or as soon as possible: timers and posted facts.

Times count from the fixed origin of the run's clock, so that a late delivery delays no later one.
"""

import heapq
import socket
from collections import deque
from contextlib import suppress

from vertumnus.domain.facts import InputFact
from vertumnus.domain.units import Nanoseconds


class Agenda:
    """Scheduled facts by time, and a queue that other threads post into."""

    def __init__(self) -> None:
        self._heap: list[tuple[Nanoseconds, int, InputFact]] = []
        self._scheduled = 0
        self._posted: deque[InputFact] = deque()
        self._ear, self._bell = socket.socketpair()
        self._ear.setblocking(False)
        self._bell.setblocking(False)

    @property
    def wake_fd(self) -> int:
        """Readable when something was posted."""
        return self._ear.fileno()

    def __bool__(self) -> bool:
        """Whether anything is still to be delivered."""
        return bool(self._heap or self._posted)

    def schedule(self, fact: InputFact, at_ns: Nanoseconds) -> None:
        """Keep *fact* until *at_ns*; equal times keep their order."""
        heapq.heappush(self._heap, (at_ns, self._scheduled, fact))
        self._scheduled += 1

    def post(self, fact: InputFact) -> None:
        """Keep *fact* for the next look; from any thread. After `close` it goes nowhere."""
        self._posted.append(fact)
        with suppress(OSError):  # full of wishes to wake up, of which one is enough; or closed
            self._bell.send(b"!")

    def take(self, now: Nanoseconds) -> InputFact | None:
        """Return what is due: the earliest scheduled fact, else the first posted one, else None."""
        if self._heap and self._heap[0][0] <= now:
            return heapq.heappop(self._heap)[2]
        if not self._posted:
            self._hush()  # before the look, not after it: a fact posted in between would be slept over
        return self._posted.popleft() if self._posted else None

    def wait_ns(self, now: Nanoseconds, longest_ns: Nanoseconds) -> Nanoseconds:
        """Return how long nothing scheduled is due, *longest_ns* at most [ns]."""
        return max(0, min(longest_ns, self._heap[0][0] - now)) if self._heap else longest_ns

    def close(self) -> None:
        """Give the sockets back; safe to call twice."""
        self._ear.close()
        self._bell.close()

    def _hush(self) -> None:
        with suppress(BlockingIOError):
            while self._ear.recv(4_096):
                pass
