"""A length threshold between the smallest and the largest degree."""

from collections.abc import Sequence

from msgspec import Struct

from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.placement import Offer


class StaticPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="static"
):
    """Prompts longer than a threshold go to the largest degree, the others to the smallest."""

    length_threshold: int
    """The longest prompt that still goes to the smallest degree [tokens as served]."""

    def __post_init__(self) -> None:
        if self.length_threshold < 1:
            raise ValueError(f"length_threshold must be at least 1 token, got {self.length_threshold}")


class StaticCosts:
    """q + s within the class that a prompt's length picks; the other class has no cost."""

    def __init__(self, policy: StaticPolicy) -> None:
        self._threshold = policy.length_threshold

    def __call__(self, request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
        """Return q + s of each offer of the class [ns], None for the others."""
        degrees = {offer.worker.degree for offer in offers}
        # of what is eligible now: when a class is out of service, the nearest one serves its requests
        degree = max(degrees) if request.input_tokens > self._threshold else min(degrees)
        return [o.queue_ns + o.service_ns if o.worker.degree == degree else None for o in offers]
