"""The longest prefix first, a policy on our cost model."""

from collections.abc import Sequence

from msgspec import Struct

from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.placement import Offer


class CacheFirstPolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="cache_first"
):
    """The worker that holds the longest prefix, whatever waits there; of several the least q + s."""


def most_cached(_request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
    """Return q + s of the offers with the most cached tokens [ns], None for the others."""
    most = max(offer.cached_tokens for offer in offers)
    return [o.queue_ns + o.service_ns if o.cached_tokens == most else None for o in offers]
