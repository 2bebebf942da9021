"""What profiling knows about one model on one kind of hardware (sec. 6.1, 8)."""

from msgspec import Struct

from vertumnus.domain.prefill_time import Coefficients, PrefillTimeModel
from vertumnus.domain.units import Nanoseconds, Tokens, to_ns


class ModelProfile(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Predicted prefill times and the costs outside the prefill pool, with where they come from."""

    model: str
    hardware: str
    provenance: str
    """Who measured or chose these numbers, and how; shown wherever they are used."""
    degrees: tuple[int, ...]
    """Degrees that the coefficients were made for."""
    prefill: Coefficients
    handoff_base_s: float
    """Fixed part of the KV hand-off to the decode pool [s]."""
    handoff_per_token_s: float
    """Hand-off time for each prompt token [s/token]."""
    decode_step_s: float
    """One decode step; the first one is part of the TTFT [s]."""
    kv_bytes_per_token: int
    """KV state of one token over all layers [bytes]."""

    def prefill_time(self) -> PrefillTimeModel:
        """Return E_C(R, P) at this profile's degrees."""
        return PrefillTimeModel.of(self.prefill, self.degrees)

    def handoff(self, input_tokens: Tokens) -> Nanoseconds:
        """Return the predicted KV hand-off time of a prompt, without the first decode step [ns]."""
        return to_ns(self.handoff_base_s + self.handoff_per_token_s * input_tokens)
