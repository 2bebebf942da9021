"""The requests of the last while, as they found the prefix index: a forecast's near future."""

from collections import deque
from typing import NamedTuple

from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND, BlockKey, Blocks, Nanoseconds

KEPT_NS: Nanoseconds = 300 * SECOND
"""How far back requests are kept, at least: no forecast looks further."""

FEWEST = 1_024
"""Requests that are kept before it is worth a look which of them are old."""


class Arrival(NamedTuple):
    """A request that came, and how much of it was known then."""

    request: Request
    known: Blocks
    """Its leading blocks that had a node in the index when it arrived."""


class RecentArrivals:
    """Requests in order of arrival; bounded by time, trimmed when twice as many have come as were kept."""

    def __init__(self) -> None:
        self._arrivals: deque[Arrival] = deque()
        self._trim_at = FEWEST

    def __len__(self) -> int:
        return len(self._arrivals)

    def note(self, request: Request, known: Blocks) -> None:
        """Remember a request that arrives now."""
        arrivals = self._arrivals
        arrivals.append(Arrival(request, known))
        if len(arrivals) >= self._trim_at:
            self._trim(request.arrival_ns - KEPT_NS)

    def between(self, after_ns: Nanoseconds, until_ns: Nanoseconds) -> list[Arrival]:
        """Return those that arrived after *after_ns* and not after *until_ns*."""
        return [each for each in self._arrivals if after_ns < each.request.arrival_ns <= until_ns]

    def _trim(self, oldest_ns: Nanoseconds) -> None:
        arrivals = self._arrivals
        while arrivals and arrivals[0].request.arrival_ns < oldest_ns:
            arrivals.popleft()
        self._trim_at = max(FEWEST, 2 * len(arrivals))


class Recurrence(NamedTuple):
    """How the recent past becomes the near future."""

    span_ns: Nanoseconds
    """The arrivals of this long before now."""
    repeats: int = 1
    """They come so often, one after the other."""
    load: float = 1.0
    """They come so many times as fast as they came."""


def as_next(arrivals: list[Arrival], now: Nanoseconds, recurrence: Recurrence) -> list[Request]:
    """Return *arrivals*, those of the span before *now*, as those to come, with ids below 0.

    A block that was new when its request arrived is resident now, so the same request would be all hits.
    Such blocks get keys that nobody has had, below 0, the same one wherever the block comes again: the
    requests hit old prefixes, and each other, as they did, and nothing else. So does each repetition.
    """
    requests: list[Request] = []
    used = 0
    for repetition in range(recurrence.repeats):
        fresh: dict[BlockKey, BlockKey] = {}
        begins_ns = (repetition + 1) * recurrence.span_ns - now
        for arrival in arrivals:
            after_ns = round((arrival.request.arrival_ns + begins_ns) / recurrence.load)
            requests.append(_again(arrival, -1 - len(requests), now + after_ns, fresh, used))
        used += len(fresh)
    return requests


def _again(
    arrival: Arrival, request_id: int, arrival_ns: Nanoseconds, fresh: dict[BlockKey, BlockKey], used: int
) -> Request:
    request, known = arrival
    keys = request.block_keys
    for key in (keys or ())[known:]:
        fresh.setdefault(key, -1 - used - len(fresh))
    return Request(
        request_id,
        arrival_ns,
        request.input_tokens,
        request.output_tokens,
        None if keys is None else tuple(fresh.get(key, key) for key in keys),
        request.ttft_target_ns,
        request.tpot_target_ns,
    )
