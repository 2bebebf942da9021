"""Load less a credit for cached tokens: Dynamo's KV router for prefill workers, on our cost model.

Not that system: its decode term is left out, since decoding has a pool of its own here.
"""

from collections.abc import Sequence

from msgspec import Struct

from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.placement import Offer
from vertumnus.policy.policies.paper import require_most


class DynamoKvPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="dynamo_kv"
):
    """The least prefill tokens in flight, this prompt's among them, less a credit for its overlap."""

    overlap_credit: float = 1.0
    """Tokens that a cached token takes off, >= 0: above 1 a hit attracts more than it saves."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.overlap_credit < float("inf"):
            raise ValueError(f"overlap_credit must be at least 0, got {self.overlap_credit}")
        require_most("overlap_credit", self.overlap_credit)


class DynamoKvCosts:
    """Uncached tokens in flight at the worker + L - credit * P."""

    def __init__(self, policy: DynamoKvPolicy, ledger: Ledger) -> None:
        self._credit = policy.overlap_credit
        self._ledger = ledger

    def __call__(self, request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
        """Return the cost of each offer [tokens]."""
        length, credit, load = request.input_tokens, self._credit, self._ledger.load
        return [
            load(offer.worker).uncached_tokens + length - round(credit * offer.cached_tokens)
            for offer in offers
        ]
