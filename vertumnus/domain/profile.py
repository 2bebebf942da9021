"""What profiling knows about one model on one kind of hardware (sec. 6.1, 8)."""

from collections.abc import Iterator
from datetime import date
from typing import Literal, TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import is_power_of_two
from vertumnus.domain.prefill_time import Coefficients, DegreeCoefficients, PrefillTimeModel
from vertumnus.domain.units import Nanoseconds, Tokens, to_ns

MOST_TOKEN_BYTES = 10**9
"""KV of one token: a thousand times that of large models, and what a run copies of it fits the tables."""
PROFILE_SCHEMA = 1
"""Goes up when a key of a profile changes its meaning."""

Form: TypeAlias = Literal["published", "log2", "per_degree"]
"""Eq. 2 as published, with ``g*log2(C)`` added, or with coefficients of each degree's own."""

Kappa: TypeAlias = float | dict[int, float]
"""One number, or by how many workers of all degrees share the load [s of work/s]."""


class FormError(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How far a form is off at one degree on points that it was not fitted to, as a share of the time."""

    form: Form
    degree: int
    points: int
    mean: float
    p50: float
    p90: float
    p99: float


class ModelProfile(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Predicted prefill times and the costs outside the prefill pool, with where they come from.

    What is None or empty is not known: a preset that was chosen, not measured, knows little of it.
    Raises ValueError with one line for each field that does not fit the others.
    """

    model: str
    hardware: str
    provenance: str
    """Who measured or chose these numbers, and how; shown wherever they are used."""
    degrees: tuple[int, ...]
    """Degrees that the coefficients were made for."""
    prefill: Coefficients
    """Shared by all degrees, with g; what the forms below do not cover."""
    handoff_base_s: float
    """Fixed part of the KV hand-off to the decode pool [s]."""
    handoff_per_token_s: float
    """Hand-off time for each prompt token [s/token]."""
    decode_step_s: float
    """One decode step; the first one is part of the TTFT [s]."""
    kv_bytes_per_token: int
    """KV state of one token over all layers [bytes]."""
    schema_version: int = PROFILE_SCHEMA
    measured_at: str | None = None
    """ISO date of the measurement, UTC."""
    dtype: str | None = None
    """Of weights, activations and KV."""
    block_tokens: int | None = None
    """Tokens in a block while measuring."""
    cores: int | None = None
    """Cores that the ranks shared; None where each had a device of its own."""
    parallelism: Literal["context", "tensor"] = "context"
    """What the ranks of a worker share: a prompt's tokens, or, of a baseline's workers, every matrix."""
    form: Form = "log2"
    """The form that predictions take."""
    published: Coefficients | None = None
    """The best fit with g = 0."""
    per_degree: dict[int, DegreeCoefficients] | None = None
    """Each degree's own fit; a degree that is not here takes ``prefill``."""
    cpu: Coefficients | None = None
    """CPU time of one rank in a prefill: what ranks that share cores take from one another."""
    clocks: dict[int, Literal["wall", "cpu"]] | None = None
    """What was fitted: wall time, or the CPU time of a rank where ranks outnumber the cores."""
    capacity: dict[int, Kappa] | None = None
    """kappa: the largest demand that a worker of the degree serves within target [s of work/s]."""
    capacity_provenance: str | None = None
    """How kappa was found: on what, in pools of how many workers, for which target."""
    errors: tuple[FormError, ...] = ()
    """Held-out errors of each form at each degree."""

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise ValueError("\n".join(problems))

    def prefill_time(self) -> PrefillTimeModel:
        """Return E_C(R, P) at this profile's degrees, in its form."""
        shared = self.prefill if self.form != "published" else self.published
        assert shared is not None, "the constructor saw to it"
        own = self.per_degree if self.form == "per_degree" else None
        return PrefillTimeModel.of(shared, self.degrees, own or {})

    def cpu_time(self) -> PrefillTimeModel | None:
        """Return one rank's CPU time of a prefill at each degree; None where that is not known."""
        return None if self.cpu is None else PrefillTimeModel.of(self.cpu, self.degrees)

    def handoff(self, input_tokens: Tokens) -> Nanoseconds:
        """Return the predicted KV hand-off time of a prompt, without the first decode step [ns]."""
        return to_ns(self.handoff_base_s + self.handoff_per_token_s * input_tokens)

    def age_days(self, today: date) -> int | None:
        """Return the days since the measurement; None where there was none."""
        return None if self.measured_at is None else (today - date.fromisoformat(self.measured_at)).days

    def error(self, form: Form, degree: int) -> FormError | None:
        """Return the held-out error of *form* at *degree*, where it is known."""
        return next((each for each in self.errors if (each.form, each.degree) == (form, degree)), None)

    def _problems(self) -> Iterator[str]:
        if self.schema_version != PROFILE_SCHEMA:
            yield f"schema_version must be {PROFILE_SCHEMA} for this version, got {self.schema_version}"
        if self.measured_at is not None and not _is_date(self.measured_at):
            yield f"measured_at must be a date as 2026-01-31, got {self.measured_at}"
        for name in ("handoff_base_s", "handoff_per_token_s", "decode_step_s"):
            if not 0.0 <= getattr(self, name) < float("inf"):
                yield f"{name} must be a finite number of seconds >= 0, got {getattr(self, name)}"
        if self.kv_bytes_per_token < 1:
            yield f"kv_bytes_per_token must be at least 1, got {self.kv_bytes_per_token}"
        if self.kv_bytes_per_token > MOST_TOKEN_BYTES:
            yield f"kv_bytes_per_token must be at most {MOST_TOKEN_BYTES:,}, got {self.kv_bytes_per_token}"
        if self.cores is not None and self.cores < 1:
            yield f"cores must be at least 1, got {self.cores}"
        if not all(map(is_power_of_two, self.degrees)):
            yield f"degrees must be powers of two (1, 2, 4, ...), got {list(self.degrees)}"
        if self.form != "log2" and getattr(self, self.form) is None:
            yield f"form must be one whose coefficients are here, got {self.form} without any"
        if self.published is not None and self.published.per_doubling_s != 0.0:
            yield f"published.per_doubling_s must be 0, got {self.published.per_doubling_s}"
        for degree, kappa in (self.capacity or {}).items():
            yield from _kappa_problems(degree, kappa)


def _kappa_problems(degree: int, kappa: Kappa) -> Iterator[str]:
    if isinstance(kappa, dict) and not kappa:
        yield f"capacity.{degree} must have at least one number of workers, got none"
    for workers, value in kappa.items() if isinstance(kappa, dict) else [(1, kappa)]:
        if workers < 1:
            yield f"capacity.{degree} must be for at least 1 worker, got {workers}"
        if not 0.0 < value < float("inf"):
            yield f"capacity.{degree} must be above 0, got {value}"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
