"""Every queue in the order in which it would run, and who passes whom."""

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
    rows = [row for worker in workers for row in _queue(worker.waiting(), replay.header.block_tokens, now)]
    return tuple(rows[:LONGEST])


def _queue(waiting: list[Queued], block_tokens: Tokens, now: Nanoseconds) -> list[Waiting]:
    arrivals = [each.request.arrival_ns for each in waiting]
    return [
        Waiting(
            worker=each.order.worker,
            place=place + 1,
            request_id=each.request.request_id,
            input_tokens=each.request.input_tokens,
            cached_tokens=each.order.expected_cached,
            waited_ns=now - each.request.arrival_ns,
            service_ns=each.order.service_ns,
            passes=sum(other < arrivals[place] for other in arrivals[place + 1 :]),
            passed_by=sum(other > arrivals[place] for other in arrivals[:place]),
            waits_for=_waits_for(each, waiting),
        )
        for place, each in enumerate(waiting)
    ]


def _waits_for(queued: Queued, waiting: list[Queued]) -> str:
    here = {each.request.request_id for each in waiting}
    others = [str(request_id) for request_id in queued.order.after if request_id in here]
    if others:
        return f"request {', '.join(others)}"
    return "" if queued.order.after_transfer is None else f"copy {queued.order.after_transfer}"
