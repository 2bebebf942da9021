"""Uncached tokens times batch size: LMetric's rule (arXiv 2603.15202) as a policy on our cost model.

Not that system: the tokens and the batch are those that our ledger knows of a prefill worker.
"""

from collections.abc import Sequence

from msgspec import Struct

from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.placement import Offer


class LMetricPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="lmetric"
):
    """The least product of uncached tokens and requests at a worker; nothing to tune."""


class LMetricCosts:
    """Tokens that the worker would have to prefill times requests that it would have, with this one."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __call__(self, request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
        """Return the product for each offer [tokens x requests]."""
        return [self._product(request, offer) for offer in offers]

    def _product(self, request: Request, offer: Offer) -> int:
        load = self._ledger.load(offer.worker)
        uncached = load.uncached_tokens + request.input_tokens - offer.cached_tokens
        return uncached * (load.waiting + load.running + 1)
