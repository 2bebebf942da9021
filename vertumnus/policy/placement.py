"""What a placement looks at and what comes of it (sec. 5.3).

An offer is what one eligible worker would mean for one request. A policy turns offers into costs in
integer nanoseconds; the least cost wins, then the smaller degree, then the lower first rank, so that
runs repeat (the paper leaves ties open).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks, Nanoseconds, RequestId, Tokens
from vertumnus.policy.candidates import Excluded
from vertumnus.policy.prefix.pull import Pull


class Offer(NamedTuple):
    """One candidate as the policy sees it."""

    worker: CpGroup
    cached_tokens: Tokens
    """P at this worker."""
    queue_ns: Nanoseconds
    """q: predicted wait."""
    service_ns: Nanoseconds
    """s: E at the worker's degree with the prefix that it will have (Eq. 3)."""
    extra_gpu_ns: Nanoseconds
    """C*s - C_min*E_Cmin(R, P): GPU time beyond the smallest eligible degree's."""
    externality_ns: Nanoseconds = 0
    """What the queued jobs behind this one would wait longer, together."""
    pending_blocks: Blocks = 0
    """Blocks of P that requests placed there before will leave."""
    priority: int | None = None
    """Place in the worker's queue; None: first come, first served."""
    after: RequestId | None = None
    """The queued request that leaves the pending blocks, which has to run before."""
    pull: Pull | None = None
    """The copy that brings blocks of P from another worker; the wait is over when they are there."""


class Decision(NamedTuple):
    """Everything that one placement looked at."""

    at: Nanoseconds
    request_id: int
    attempt: int
    offers: tuple[Offer, ...]
    """Of all candidates, or of as many as it took to find the cheapest."""
    costs: tuple[Nanoseconds | None, ...]
    """J of each offer; None where the policy's own rule left the worker out."""
    excluded: tuple[Excluded, ...]
    chosen: int | None
    """Place of the chosen offer; None when there was no candidate."""


class Observer(NamedTuple):
    """Who is shown decisions."""

    take: Callable[[Decision], object]
    """Called with each decision that is wanted, all its offers in it."""
    wants: Callable[[RequestId], bool] | None = None
    """Whether a request's decisions are wanted; None: everybody's."""


CostRule: TypeAlias = Callable[[Request, Sequence[Offer]], list[Nanoseconds | None]]
"""A policy: the cost of each offer, None for one that its rule leaves out; a copy can be made of it."""


def cheapest(offers: Sequence[Offer], costs: Sequence[Nanoseconds | None]) -> int | None:
    """Return the place of the least cost, ties to the smaller degree, then the lower first rank."""
    allowed = [cost for cost in costs if cost is not None]
    if not allowed:
        return None
    least = min(allowed)
    if costs.count(least) == 1:
        return costs.index(least)
    places = [place for place, cost in enumerate(costs) if cost == least]
    return min(places, key=lambda place: (offers[place].worker.degree, offers[place].worker.first_rank))
