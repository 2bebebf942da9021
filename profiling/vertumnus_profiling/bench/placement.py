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
    TransferFinished,
    TransferStarted,
)
from vertumnus.domain.orders import Prefill, Transfer
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

POLICIES = ("vertumnus", "paper")
OPEN_REQUESTS = 200
"""Placed and not yet served at a time, so that there are queues and reservations to be priced."""


def placement(settings: Settings) -> Iterator[Result]:
    """P50 and P99 of one decision with 17-block requests, at 15 and at 1,000 workers of two degrees."""
    for policy in POLICIES:
        yield from _decisions(settings, policy, FIFTEEN_WORKERS, settings.size(2_000, 200))
        yield from _decisions(settings, policy, THOUSAND_WORKERS, settings.size(200, 20))


def _decisions(
    settings: Settings, policy: str, counts: Mapping[int, int], decisions: int
) -> Iterator[Result]:
    pool = Served(_control_plane(policy, counts), OPEN_REQUESTS)
    requests = family_requests(OPEN_REQUESTS + settings.repeats * decisions)
    samples = []
    with rare_collections():
        for request in islice(requests, OPEN_REQUESTS):
            pool.place_ns(request)
        for _ in range(settings.repeats):
            took = [pool.place_ns(request) for request in islice(requests, decisions)]
            samples.append(np.percentile(took, (50, 99)) / 1_000)
    for percentile, values in zip(("p50", "p99"), np.transpose(samples).tolist(), strict=True):
        yield result(
            f"placement/{policy}/{sum(counts.values())}_workers/{percentile}", "us", values, decisions
        )


def _control_plane(policy: str, counts: Mapping[int, int]) -> ControlPlane:
    config = of_composition(simulated_config(f"policy={policy}"), counts)
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
        *copies, order = orders
        assert isinstance(order, Prefill), f"request {request.request_id} was not placed: {order}"
        for copy in copies:
            assert isinstance(copy, Transfer)
            self._copy(request.arrival_ns, copy)  # it takes milliseconds, the request waits for longer
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

    def _copy(self, at: Nanoseconds, copy: Transfer) -> None:
        number, worker, first = copy.transfer_id, copy.destination, copy.first_block
        owners = tuple(worker.first_rank + block % worker.degree for block in range(first, len(copy.path)))
        self._handle(TransferStarted(at, number, worker, ()))
        self._handle(TransferFinished(at, number, worker, first, owners, len(owners), 1))
