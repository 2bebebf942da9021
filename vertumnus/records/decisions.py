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
    externality_ns: Nanoseconds | None
    """What the queued jobs behind it would wait longer, together."""
    pending_blocks: int | None
    """Blocks of P that requests placed there before will leave."""
    pulled_blocks: int | None
    """Blocks of P that would be fetched from another worker."""
    pull_source: CpGroup | None
    """That worker; None where nothing is fetched, or a copy under way brings it."""
    after_request: RequestId | None
    """The queued request that has to run before."""
    cost: int | None
    """What the worker was judged by, in ``cost_unit``; None where it was left out."""
    cost_unit: str
    """ns for costs that are times."""
    chosen: bool
    excluded_reason: str | None

    @property
    def cost_ns(self) -> Nanoseconds | None:
        """J; None for a policy that does not count time."""
        return self.cost if self.cost_unit == "ns" else None
