"""A worker's queue as its fleet keeps it, mirrored from orders and facts alone (D3)."""

from bisect import bisect_left, bisect_right
from itertools import accumulate

from vertumnus.domain.units import Nanoseconds, RequestId


class QueueMirror:
    """Jobs in the order in which they would run: by priority, equal ones in order of their orders."""

    def __init__(self) -> None:
        self.ids: list[RequestId] = []
        """The queued requests, in order; to be read only."""
        self.priorities: list[int] = []
        """Of each; to be read only."""
        self._services: list[Nanoseconds] = []
        self.sums: list[Nanoseconds] = [0]
        """Work of the first n jobs, by n; to be read only."""

    def __len__(self) -> int:
        return len(self.ids)

    def insert(self, request_id: RequestId, priority: int, service_ns: Nanoseconds) -> None:
        """Put a job behind those of its priority."""
        place = bisect_right(self.priorities, priority)
        self.priorities.insert(place, priority)
        self.ids.insert(place, request_id)
        self._services.insert(place, service_ns)
        self._sum_from(place)

    def remove(self, request_id: RequestId, priority: int) -> None:
        """Take a job out; it is there."""
        place = self.ids.index(request_id, bisect_left(self.priorities, priority))
        del self.priorities[place], self.ids[place], self._services[place]
        self._sum_from(place)

    def place(self, priority: int) -> tuple[Nanoseconds, int]:
        """Return the work before a new job of *priority* [ns], and the number of jobs behind it."""
        before = bisect_right(self.priorities, priority)
        return self.sums[before], len(self.ids) - before

    def _sum_from(self, place: int) -> None:
        self.sums[place:] = accumulate(self._services[place:], initial=self.sums[place])
