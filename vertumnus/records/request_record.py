"""One request as a run leaves it behind (sec. 3.3): instants and durations in nanoseconds."""

from typing import Literal, TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import Epoch, JobId, Nanoseconds, RequestId, Tokens

Ending: TypeAlias = Literal["finished", "failed", "rejected", "cancelled", "interrupted"]
"""How a request ended; interrupted when the run ended first."""


class RequestRecord(Struct, frozen=True, gc=False):
    """One request from arrival to end; None wherever it did not come that far."""

    request_id: RequestId
    arrival_ns: Nanoseconds
    t_ns: Nanoseconds
    """When it ended, or the run did."""
    status: Ending
    reason: str | None
    attempts: int
    """The first placement and those after a failure; a redirect is none."""
    placements: int
    """All placements, redirects from draining workers too."""
    worker: CpGroup | None
    """Of the last step, or the last placement where no step started."""
    epoch: Epoch | None
    step_id: JobId | None
    input_tokens: Tokens
    cached_tokens: Tokens | None
    output_tokens: Tokens | None
    oracle_cached_tokens: Tokens | None
    expected_cached_tokens: Tokens | None
    predicted_service_ns: Nanoseconds | None
    queue_ns: Nanoseconds | None
    cache_wait_ns: Nanoseconds | None
    prefill_ns: Nanoseconds | None
    compute_ns: Nanoseconds | None
    ext_ns: Nanoseconds | None
    ttft_ns: Nanoseconds | None
    tpot_ns: Nanoseconds | None
    """Mean time per output token after the first, rounded down; None below two tokens."""
    e2e_ns: Nanoseconds | None
    gpu_ns: Nanoseconds | None
    """degree * prefill time; the requests of a step share it by their uncached tokens."""
    send_lag_ns: Nanoseconds | None
    """How late the request was sent; None in simulated time."""
    slo_ttft_ns: Nanoseconds | None
    slo_met: bool | None
    """False for all that did not finish; None without a target."""
    slo_tpot_ns: Nanoseconds | None
    tpot_met: bool | None

    @property
    def uncached_tokens(self) -> Tokens | None:
        """R = L - P."""
        return None if self.cached_tokens is None else self.input_tokens - self.cached_tokens
