"""Our placement: the published cost over better estimates of the wait, and a price for delaying others.

A to E can be switched off one by one, so that an ablation is one multirun; with all of them off and
beta and lambda alike this is `policy=paper`.
"""

from collections.abc import Sequence

from msgspec import Struct

from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.placement import Offer
from vertumnus.policy.policies.paper import require_most, require_weights


class VertumnusPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="vertumnus"
):
    """Queue-, prefix- and externality-aware placement, shortest first at each worker."""

    beta: float = 1.0
    """Weight of the service time, >= 1."""
    gpu_time_weight: float = 0.1
    """lambda >= 0: price of GPU time beyond what the smallest eligible degree would use."""
    remaining_queue: bool = True
    """A: the wait is what remains of the running step and of the queued jobs that would run before;
    false: the full times of all unfinished requests, as the published formula."""
    pending_prefix: bool = True
    """B: P counts blocks that requests queued or running at the worker will leave there."""
    pull: bool = True
    """C: a worker may fetch the blocks that it lacks from their best holder while the request waits."""
    shortest_first: bool = True
    """D: a worker's queue is in order of s - ageing*waited; false: first come, first served."""
    ageing: float = 0.1
    """Seconds of service that one second of waiting makes up for, > 0; only with ``shortest_first``."""
    externality: bool = True
    """E: a request also pays its service time once for each queued job that it would delay."""

    def __post_init__(self) -> None:
        require_weights(self.beta, self.gpu_time_weight)
        if not 0.0 < self.ageing < float("inf"):
            raise ValueError(f"ageing must be above 0, got {self.ageing}")
        require_most("ageing", self.ageing)


class ExternalityCosts:
    """J = q + beta*s + lambda*(C*s - C_min*E_Cmin) + externality."""

    def __init__(self, policy: VertumnusPolicy) -> None:
        self._beta = policy.beta
        self._weight = policy.gpu_time_weight
        self._charges = policy.externality

    def __call__(self, _request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
        """Return J of each offer [ns]."""
        return [self.of(offer) for offer in offers]

    def of(self, offer: Offer) -> Nanoseconds:
        """Return J of one offer [ns]."""
        own = offer.queue_ns + self.unloaded(offer.service_ns, offer.extra_gpu_ns)
        return own + offer.externality_ns if self._charges else own

    def unloaded(self, service_ns: Nanoseconds, extra_gpu_ns: Nanoseconds) -> Nanoseconds:
        """Return J of an offer that waits for nobody and delays nobody [ns]."""
        return round(self._beta * service_ns + self._weight * extra_gpu_ns)
