"""Every queue in the order in which it would run, and who passes whom."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import Nanoseconds, RequestId, Tokens
from vertumnus.workers.worker import Queued
from vertumnus_console.replay import Replay

LONGEST = 500
"""Rows at most: more nobody reads."""


class Waiting(NamedTuple):
    """A queued request."""

    worker: CpGroup
    place: int
    """In its queue, from 1."""
    request_id: RequestId
    input_tokens: Tokens
    cached_tokens: Tokens
    """P as routing saw it."""
    waited_ns: Nanoseconds
    """Since it arrived."""
    service_ns: Nanoseconds
    """s: its predicted prefill."""
    passes: int
    """Requests of this queue that arrived before it and run after it."""
    passed_by: int
    """Requests of this queue that arrived after it and run before it."""
    waits_for: str
    """Another request or a copy that must end before it starts; "" for none."""


def queues(replay: Replay, now: Nanoseconds) -> tuple[Waiting, ...]:
    """Return what waits, queue by queue, the worker with the longest wait first."""
    workers = [worker for worker in replay.pool.fleet.workers.values() if worker.queued]
    workers.sort(key=lambda worker: (-sum(each.order.service_ns for each in worker.waiting()), worker.group))
    rows = (row for worker in workers for row in _queue(worker.waiting(), now))
    return tuple(islice(rows, LONGEST))


def _queue(waiting: list[Queued], now: Nanoseconds) -> Iterator[Waiting]:
    arrivals = [each.request.arrival_ns for each in waiting]
    numbers = {each.request.request_id: each.number for each in waiting}
    passed_by = _earlier_and_larger(arrivals)
    passes = _earlier_and_larger([-arrival for arrival in reversed(arrivals)])[::-1]
    for place, each in enumerate(waiting):
        yield Waiting(
            worker=each.order.worker,
            place=place + 1,
            request_id=each.request.request_id,
            input_tokens=each.request.input_tokens,
            cached_tokens=each.order.expected_cached,
            waited_ns=now - each.request.arrival_ns,
            service_ns=each.order.service_ns,
            passes=passes[place],
            passed_by=passed_by[place],
            waits_for=_waits_for(each, numbers),
        )


def _earlier_and_larger(numbers: Sequence[int]) -> list[int]:
    """Return for each of *numbers* how many before it are larger; a queue may hold thousands."""
    counts, before = [], list[int]()
    for number in numbers:
        place = bisect_right(before, number)
        counts.append(len(before) - place)
        before.insert(place, number)
    return counts


def _waits_for(queued: Queued, numbers: Mapping[RequestId, int]) -> str:
    others = [str(request_id) for request_id in queued.waits_for(numbers)]
    if others:
        return f"request {', '.join(others)}"
    return "" if queued.order.after_transfer is None else f"copy {queued.order.after_transfer}"
