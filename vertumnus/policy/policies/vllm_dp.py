"""Four times the waiting plus the running requests: vLLM's data-parallel balancer on our cost model.

Not that system. It looks at no prefix. Its workers are tensor-parallel: take a profile of that time
model for it (profile=qwen3_30b_a3b-h20-tp4, deepseek_v4_flash-h20-tp4) and one degree, 4.
"""

from collections.abc import Sequence

from msgspec import Struct

from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.placement import Offer

WAITING_WEIGHT = 4
"""Running requests that one waiting request counts for, as in vLLM."""


class VllmDpPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="vllm_dp"
):
    """The least 4 * waiting + running requests."""


class VllmDpCosts:
    """4 * waiting + running requests at the worker."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __call__(self, _request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
        """Return the score of each offer [requests]."""
        loads = [self._ledger.load(offer.worker) for offer in offers]
        return [WAITING_WEIGHT * load.waiting + load.running for load in loads]
