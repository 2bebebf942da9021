"""Placement as published (sec. 5.3)."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.placement import Offer

MOST_WEIGHT = 1_000_000
"""Of one term of a cost against another: what is weighed has to fit the tables, also when tuned live."""


class PaperPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="paper"
):
    """Placement as published (sec. 5.3), FIFO at each worker."""

    beta: float = 1.0
    """Weight of the service time, >= 1: above 1 a prefix hit attracts more than it saves."""
    gpu_time_weight: float = 0.1
    """lambda >= 0: price of GPU time beyond what the smallest eligible degree would use."""
    queue_estimate: Literal["outstanding", "remaining"] = "outstanding"
    """``outstanding`` sums full predicted times, as the formula of sec. 5.3; ``remaining`` takes off
    what the running step has already used, as its prose."""

    def __post_init__(self) -> None:
        require_weights(self.beta, self.gpu_time_weight)


class PublishedCosts:
    """J = q + beta*s + lambda*(C*s - C_min*E_Cmin), without the externality of other policies."""

    def __init__(self, beta: float, gpu_time_weight: float) -> None:
        self._beta = beta
        self._weight = gpu_time_weight

    def __call__(self, _request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
        """Return J of each offer [ns]."""
        beta, weight = self._beta, self._weight
        return [
            offer[2] + round(beta * offer[3] + weight * offer[4])  # q, s and extra GPU time
            for offer in offers
        ]

    def unloaded(self, service_ns: Nanoseconds, extra_gpu_ns: Nanoseconds) -> Nanoseconds:
        """Return J at a worker that nobody waits for [ns]."""
        return round(self._beta * service_ns + self._weight * extra_gpu_ns)


def require_weights(beta: float, gpu_time_weight: float) -> None:
    """Raise ValueError unless beta >= 1 and lambda >= 0, both at most `MOST_WEIGHT`."""
    if not 1.0 <= beta < float("inf"):
        raise ValueError(f"beta must be at least 1, got {beta}")
    if not 0.0 <= gpu_time_weight < float("inf"):
        raise ValueError(f"gpu_time_weight must be at least 0, got {gpu_time_weight}")
    require_most("beta", beta)
    require_most("gpu_time_weight", gpu_time_weight)


def require_most(name: str, weight: float) -> None:
    """Raise ValueError when the *weight* called *name* is above `MOST_WEIGHT`."""
    if weight > MOST_WEIGHT:
        raise ValueError(f"{name} must be at most {MOST_WEIGHT:,}, got {weight:g}")
