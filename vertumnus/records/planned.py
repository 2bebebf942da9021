"""The requests that a run is to serve, told before the first of them arrives."""

import hashlib
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from vertumnus.domain.request import Request
from vertumnus.trace.arrivals import mean_rate


class Planned(Struct, frozen=True, kw_only=True):
    """What a run was given; a run that is interrupted has seen less of it."""

    requests: int
    offered_requests_per_s: float | None
    """Mean arrival rate, gaps over span; None where nothing spans any time."""
    arrivals_hash: str
    """Equal for runs that serve the same requests at the same times, and only then [hex, 16 digits]."""
    skipped_rows: int = 0
    """Bad rows of the trace file that were left out."""

    @classmethod
    def of(cls, requests: Sequence[Request], skipped_rows: int = 0) -> "Planned":
        """Describe *requests*, which are in order of arrival."""
        return cls(
            requests=len(requests),
            offered_requests_per_s=mean_rate(requests),
            arrivals_hash=_arrivals_hash(requests),
            skipped_rows=skipped_rows,
        )


def _arrivals_hash(requests: Sequence[Request]) -> str:
    """Hash times, lengths and content; targets are a judgement on them and are left out."""
    digest = hashlib.sha256()
    for each in requests:
        told = (each.arrival_ns, each.input_tokens, each.output_tokens, each.block_keys)
        digest.update(msgspec.msgpack.encode(told))
    return digest.hexdigest()[:16]
