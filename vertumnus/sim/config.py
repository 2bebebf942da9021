"""Settings of the simulated backend."""

from msgspec import Struct


class SimConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="sim"):
    """Virtual time; a job takes what the profile predicts, times seeded noise."""

    noise_sigma: float = 0.06
    """Log-normal spread of actual over predicted prefill time; 0 is exact."""
    switch_s: float = 0.02
    """From sending a control record to a rank's acknowledgement [s]."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.switch_s < float("inf"):
            raise ValueError(f"switch_s must be at least 0, got {self.switch_s}")
        if not 0.0 <= self.noise_sigma <= 2.0:
            raise ValueError(f"noise_sigma must be in [0, 2], got {self.noise_sigma}")
