"""What a forecast answers: how the near future would be with one move, or without any."""

from msgspec import Struct

from vertumnus.domain.move import Move
from vertumnus.domain.units import Blocks, Nanoseconds


class ForecastOutcome(Struct, frozen=True, gc=False, array_like=True):
    """One candidate, carried out at the moment of the forecast.

    It counts the requests that waited for their first token then, and those that arrive after it.
    """

    move: Move | None
    """None: the composition stays as it is."""
    requests: int
    """Requests counted, the same for every candidate of a forecast."""
    served: int
    """Those of them that got a first token."""
    ttft_mean_ns: Nanoseconds | None
    """Over those that were served or given up, of whom the wait until then counts; None without any."""
    ttft_p90_ns: Nanoseconds | None
    slo_attainment: float | None
    """Input tokens of requests within their TTFT target / of all with a target."""
    drain_ns: Nanoseconds | None = None
    """First Drain to the last source at its boundary; None without a move."""
    switch_ns: Nanoseconds | None = None
    """AdoptEpoch to the new workers' opening; None unless the move committed."""
    missing_blocks: Blocks = 0
    """Blocks of its sources that a new worker lacks of what the other one holds: what is to reconcile."""
    copied_blocks: Blocks = 0
    """Those of them, and of earlier moves, that requests of the forecast have copied."""
    copied_bytes: int = 0
