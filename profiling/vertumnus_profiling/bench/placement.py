"""How long the control plane takes to place a request."""

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from time import thread_time_ns

import numpy as np

from vertumnus.domain.facts import (
    Installed,
    RequestArrived,
    RequestEnded,
    StepFinished,
    StepItem,
    StepStarted,
)
from vertumnus.domain.orders import Prefill
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.run.pool import build_pool
from vertumnus.run.simulated import rare_collections
from vertumnus_profiling.bench.measure import Result, Settings, result
from vertumnus_profiling.bench.pools import (
    BLOCK_TOKENS,
    FIFTEEN_WORKERS,
    THOUSAND_WORKERS,
    family_requests,
    of_composition,
    profile_of,
    simulated_config,
)

OPEN_REQUESTS = 200
"""Placed and not yet served at a time, so that there are queues and reservations to be priced."""


def placement(settings: Settings) -> Iterator[Result]:
    """P50 and P99 of one decision with 17-block requests, at 15 and at 1,000 workers of two degrees."""
    yield from _decisions(settings, FIFTEEN_WORKERS, settings.size(2_000, 200))
    yield from _decisions(settings, THOUSAND_WORKERS, settings.size(200, 20))


def _decisions(settings: Settings, counts: Mapping[int, int], decisions: int) -> Iterator[Result]:
    pool = Served(_control_plane(counts), OPEN_REQUESTS)
    requests = family_requests(OPEN_REQUESTS + settings.repeats * decisions)
    samples = []
    with rare_collections():
        for request in islice(requests, OPEN_REQUESTS):
            pool.place_ns(request)
        for _ in range(settings.repeats):
            took = [pool.place_ns(request) for request in islice(requests, decisions)]
            samples.append(np.percentile(took, (50, 99)) / 1_000)
    for percentile, values in zip(("p50", "p99"), np.transpose(samples).tolist(), strict=True):
        yield result(f"placement/{sum(counts.values())}_workers/{percentile}", "us", values, decisions)


def _control_plane(counts: Mapping[int, int]) -> ControlPlane:
    config = of_composition(simulated_config("policy=paper"), counts)
    return build_pool(config, profile_of(config), BLOCK_TOKENS).control


class Served:
    """A control plane whose oldest placed request is served whenever more than *backlog* are open."""

    def __init__(self, control: ControlPlane, backlog: int) -> None:
        self._backlog = backlog
        self._handle = control.handle
        self._open: deque[tuple[Request, Prefill]] = deque()

    def place_ns(self, request: Request) -> Nanoseconds:
        """Place *request* and return the processor time of that; then serve the oldest one, untimed."""
        fact = RequestArrived(request.arrival_ns, request)
        started = thread_time_ns()
        orders = self._handle(fact)
        took = thread_time_ns() - started
        (order,) = orders
        assert isinstance(order, Prefill), f"request {request.request_id} was not placed: {order}"
        self._open.append((request, order))
        if len(self._open) > self._backlog:
            self._serve(request.arrival_ns, *self._open.popleft())
        return took

    def _serve(self, at: Nanoseconds, request: Request, order: Prefill) -> None:
        number, worker, cached = request.request_id, order.worker, order.expected_cached
        installed = (Installed(number, cached // BLOCK_TOKENS, None),)
        self._handle(StepStarted(at, number, worker, 0, (StepItem(number, order.attempt, cached),), ()))
        self._handle(StepFinished(at, number, worker, order.service_ns, installed))
        self._handle(RequestEnded(at, number, "finished", request.output_tokens))
