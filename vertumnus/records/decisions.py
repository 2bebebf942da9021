"""One candidate of one placement, for the decisions table."""

from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import Nanoseconds, RequestId, Tokens


class CandidateRow(NamedTuple):
    """What a worker would have cost a request, or why it was no candidate."""

    request_id: RequestId
    attempt: int
    t_ns: Nanoseconds
    worker: CpGroup
    cached_tokens: Tokens | None
    queue_ns: Nanoseconds | None
    """q."""
    service_ns: Nanoseconds | None
    """s."""
    gpu_time_ns: Nanoseconds | None
    """Extra GPU time against the smallest eligible degree, before its weight lambda."""
    cost_ns: Nanoseconds | None
    """J."""
    chosen: bool
    excluded_reason: str | None
