"""Settings of the simulated backend."""

from math import inf
from typing import Literal

from msgspec import Struct

MOST_SPEED = 1e6
"""Twelve days a second; clock=fast is faster than anybody watches."""


class SimConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind", tag="sim"):
    """Virtual time; a job takes what the profile predicts, times seeded noise."""

    noise_sigma: float = 0.06
    """Log-normal spread of actual over predicted prefill time; 0 is exact."""
    switch_s: float = 0.02
    """From sending a control record to a rank's acknowledgement [s]."""
    forecast_s: float = 0.0
    """From asking for a forecast to its answer, on the run's clock [s]."""

    clock: Literal["fast", "paced"] = "fast"
    """``fast`` runs as fast as it can; ``paced`` holds virtual time to the wall clock times ``speed``, for
    people who watch and act; every event comes at the same virtual time either way."""
    speed: float | None = None
    """Virtual seconds a second of a paced run; null is 1."""

    def __post_init__(self) -> None:
        if self.speed is not None and self.clock != "paced":
            raise ValueError(
                f"speed must be null with clock={self.clock}, got {self.speed}; clock=paced takes it"
            )
        if self.speed is not None and not 0.0 < self.speed < inf:
            raise ValueError(f"speed must be above 0, got {self.speed}")
        if self.speed is not None and self.speed > MOST_SPEED:
            raise ValueError(f"speed must be at most {MOST_SPEED:,.0f}, got {self.speed:g}")
        if not 0.0 <= self.switch_s < float("inf"):
            raise ValueError(f"switch_s must be at least 0, got {self.switch_s}")
        if not 0.0 <= self.forecast_s < float("inf"):
            raise ValueError(f"forecast_s must be at least 0, got {self.forecast_s}")
        if not 0.0 <= self.noise_sigma <= 2.0:
            raise ValueError(f"noise_sigma must be in [0, 2], got {self.noise_sigma}")
