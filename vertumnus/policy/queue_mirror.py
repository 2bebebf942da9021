"""A worker's queue as its fleet keeps it, mirrored from orders and facts alone (D3)."""

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import NamedTuple

from vertumnus.domain.units import Nanoseconds, RequestId


class Place(NamedTuple):
    """Where in a queue a job would stand."""

    wait_ns: Nanoseconds
    """Predicted work of the jobs that would run before it."""
    behind: int
    """Jobs that would run after it."""


class QueueMirror:
    """Jobs in the order in which they would run: by priority, equal ones in order of their orders."""

    def __init__(self) -> None:
        self._priorities: list[int] = []
        self._ids: list[RequestId] = []
        self._services: list[Nanoseconds] = []
        self._sums: list[Nanoseconds] | None = [0]
        """Work of the first n jobs, by n; None when the queue has changed since."""

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> list[RequestId]:
        """The queued requests, in order."""
        return list(self._ids)

    def insert(self, request_id: RequestId, priority: int, service_ns: Nanoseconds) -> None:
        """Put a job behind those of its priority."""
        place = bisect_right(self._priorities, priority)
        self._priorities.insert(place, priority)
        self._ids.insert(place, request_id)
        self._services.insert(place, service_ns)
        self._sums = None

    def remove(self, request_id: RequestId, priority: int) -> None:
        """Take a job out; it is there."""
        place = self._ids.index(request_id, bisect_left(self._priorities, priority))
        del self._priorities[place], self._ids[place], self._services[place]
        self._sums = None

    def place(self, priority: int) -> Place:
        """Return where a new job of *priority* would stand."""
        if not self._ids:
            return _FIRST
        if self._sums is None:
            self._sums = list(accumulate(self._services, initial=0))
        before = bisect_right(self._priorities, priority)
        return Place(self._sums[before], len(self._ids) - before)


_FIRST = Place(0, 0)
