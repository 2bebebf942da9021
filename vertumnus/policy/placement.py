"""Placement cost and choice (sec. 5.3), and the baselines, all as costs over the same offers.

An offer is what one eligible worker would mean for one request. A policy turns offers into costs in
integer nanoseconds; the least cost wins, then the smaller degree, then the lower first rank, so that
runs repeat (the paper leaves ties open).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.policy.config import (
    HomoPolicy,
    LeastLoadedPolicy,
    PaperPolicy,
    PolicyConfig,
    RoundRobinPolicy,
    StaticPolicy,
)


class Offer(NamedTuple):
    """One candidate as the policy sees it."""

    worker: CpGroup
    cached_tokens: Tokens
    """P at this worker."""
    queue_ns: Nanoseconds
    """q: predicted wait."""
    service_ns: Nanoseconds
    """s: E at the worker's degree with the prefix that it holds (Eq. 3)."""
    extra_gpu_ns: Nanoseconds
    """C*s - C_min*E_Cmin(R, P): GPU time beyond the smallest eligible degree's."""


class Excluded(NamedTuple):
    """A worker that was no candidate, and why."""

    worker: CpGroup
    reason: str


class Decision(NamedTuple):
    """Everything that one placement looked at."""

    at: Nanoseconds
    request_id: int
    attempt: int
    offers: tuple[Offer, ...]
    costs: tuple[Nanoseconds | None, ...]
    """J of each offer; None where the policy's own rule left the worker out."""
    excluded: tuple[Excluded, ...]
    chosen: int | None
    """Place of the chosen offer; None when there was no candidate."""


CostRule: TypeAlias = Callable[[Request, Sequence[Offer]], list[Nanoseconds | None]]
"""A policy: the cost of each offer, None for one that its rule leaves out; a copy can be made of it."""


def cost_rule(policy: PolicyConfig) -> CostRule:
    """Return the costs that *policy* charges."""
    match policy:
        case PaperPolicy():
            return partial(_paper, policy.beta, policy.gpu_time_weight)
        case HomoPolicy():
            return _work
        case StaticPolicy():
            return partial(_static, policy.length_threshold)
        case LeastLoadedPolicy():
            return _least_loaded
        case RoundRobinPolicy():
            return _RoundRobin()


def cheapest(offers: Sequence[Offer], costs: Sequence[Nanoseconds | None]) -> int | None:
    """Return the place of the least cost, ties to the smaller degree, then the lower first rank."""
    allowed = [cost for cost in costs if cost is not None]
    if not allowed:
        return None
    least = min(allowed)
    places = [place for place, cost in enumerate(costs) if cost == least]
    if len(places) == 1:
        return places[0]
    return min(places, key=lambda place: (offers[place].worker.degree, offers[place].worker.first_rank))


def _paper(
    beta: float, weight: float, _request: Request, offers: Sequence[Offer]
) -> list[Nanoseconds | None]:
    return [
        queue_ns + round(beta * service_ns + weight * extra_gpu_ns)
        for _, _, queue_ns, service_ns, extra_gpu_ns in offers
    ]


def _work(_request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
    return [offer.queue_ns + offer.service_ns for offer in offers]


def _least_loaded(_request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
    return [offer.queue_ns for offer in offers]


def _static(length_threshold: Tokens, request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
    degrees = {offer.worker.degree for offer in offers}
    # of what is eligible now: when a class is out of service, the nearest one serves its requests
    degree = max(degrees) if request.input_tokens > length_threshold else min(degrees)
    return [o.queue_ns + o.service_ns if o.worker.degree == degree else None for o in offers]


class _RoundRobin:
    """Cost is the distance from the worker after the last one chosen, by first rank."""

    def __init__(self) -> None:
        self._last_rank = -1

    def __call__(self, _request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
        order = sorted(range(len(offers)), key=lambda i: self._distance(offers[i].worker))
        self._last_rank = offers[order[0]].worker.first_rank
        costs: list[Nanoseconds | None] = [None] * len(offers)
        for distance, place in enumerate(order):
            costs[place] = distance
        return costs

    def _distance(self, worker: CpGroup) -> tuple[bool, int]:
        return worker.first_rank <= self._last_rank, worker.first_rank
