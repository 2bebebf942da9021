"""The network between workers as predictions see it."""

from msgspec import Struct

from vertumnus.domain.units import Nanoseconds, to_ns


class LinkConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a worker sends or receives of KV in one direction."""

    bytes_per_s: float = 20e9
    """Bandwidth of one worker's link [bytes/s]."""
    latency_s: float = 0.003
    """From the wish for a copy to its first byte [s]."""

    def __post_init__(self) -> None:
        if not 0.0 < self.bytes_per_s < float("inf"):
            raise ValueError(f"bytes_per_s must be above 0, got {self.bytes_per_s}")
        if not 0.0 <= self.latency_s < float("inf"):
            raise ValueError(f"latency_s must be at least 0, got {self.latency_s}")

    def transfer(self, payload_bytes: int) -> Nanoseconds:
        """Return the time of a copy alone on the link [ns]."""
        return to_ns(self.latency_s + payload_bytes / self.bytes_per_s)
