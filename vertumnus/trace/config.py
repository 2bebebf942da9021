"""What to replay, when its requests arrive, and which latency each of them was promised."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

from msgspec import Struct, structs

from vertumnus.domain.units import Nanoseconds, Tokens, to_ns
from vertumnus.domain.wording import counted
from vertumnus.trace.formats.known import KNOWN, EmptyOutputs, FormatName, Unit
from vertumnus.trace.phases import Phase

Generator: TypeAlias = Literal["l_eval", "tool_agent", "production", "production_day", "phases", "ladder"]


class WorkloadConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One trace, generated or read from a file, and the part of it that a run uses.

    Raises ValueError with one line for each field that is out of bounds.
    """

    name: str
    """What reports call this workload."""
    purpose: str
    """One line for the list of workloads: what it stands for."""
    generator: Generator | None = None
    """A generator; its tokens and blocks are made from the run's seed."""
    phases: tuple[Phase, ...] = ()
    """For generator=phases: the stretches of time, one after the other."""
    path: str | None = None
    """A trace file; replaces the generator where both are given."""
    url: str | None = None
    """Where vertumnus trace download fetches the file from."""
    sha256: str | None = None
    """Checksum that the download must have; None: the first one counts from then on."""
    mix: tuple[str, ...] = ()
    """Further files of the same format, merged by time since their first requests; no ids are shared."""
    format: FormatName = "mooncake"
    """How the file's records are laid out."""
    unit: Unit | None = None
    """Unit of the file's time stamps, checked against the span that follows from it; None: the format's."""
    block_tokens: int | None = None
    """Tokens behind one hash id of the trace, before scaling, checked by lengths; None: the format's."""
    bad_rows: Literal["error", "skip"] = "error"
    """Refuse a file with rows that break the format, or leave such rows out and count them."""
    empty_outputs: EmptyOutputs = "error"
    """Rows with 0 output tokens, failed requests mostly: refuse, drop, or keep with one token; counted."""
    chars_per_token: float = 4.5
    """Characters taken for one token where a file holds texts."""
    start_s: float = 0.0
    """Start of the window, from the trace's first request, before any scaling [s]."""
    duration_s: float | None = None
    """Length of the window before any scaling; None: to the end of the trace [s]."""
    requests: int | None = None
    """At most this many requests, the first ones of the window; None: all of them."""
    token_scale: float = 1.0
    """Share of every length and of the block size that is kept: 1/16 makes 512-token blocks 32."""

    def __post_init__(self) -> None:
        _raise_all(self._problems())

    @property
    def token_divisor(self) -> int:
        """What lengths are divided by: 1 / token_scale."""
        return round(1 / self.token_scale)

    @property
    def scaled_block_tokens(self) -> Tokens:
        """Tokens in one block of the scaled trace."""
        return self.trace_block_tokens // self.token_divisor

    @property
    def trace_block_tokens(self) -> Tokens:
        """Tokens behind one id of the trace as it is."""
        return KNOWN[self.format].block_tokens if self.block_tokens is None else self.block_tokens

    @property
    def stamp_unit(self) -> Unit | None:
        """The unit of the file's time stamps; None where the format has none."""
        return KNOWN[self.format].unit if self.unit is None else self.unit

    def _problems(self) -> Iterator[str]:
        if self.generator is None and self.path is None:
            names = ", ".join(get_args(Generator))
            yield f"generator must name one ({names}) where path names no trace file, got neither"
        if (self.generator == "phases") != bool(self.phases):
            found = counted(len(self.phases), "phase")
            yield f"phases must be given with generator=phases and only there, got {found}"
        if self.trace_block_tokens < 1:
            yield f"block_tokens must be at least 1, got {self.block_tokens}"
        if not (math.isfinite(self.start_s) and self.start_s >= 0):
            yield f"start_s must be at least 0, got {self.start_s:g}"
        if self.duration_s is not None and not _is_positive(self.duration_s):
            yield f"duration_s must be above 0, got {self.duration_s:g}"
        if self.requests is not None and self.requests < 1:
            yield f"requests must be at least 1, got {self.requests}"
        yield from self._file_problems()
        yield from self._scale_problems()

    def _file_problems(self) -> Iterator[str]:
        if self.unit is not None and (self.path is None or KNOWN[self.format].unit is None):
            where = "a generator" if self.path is None else f"format={self.format}"
            yield f"unit has no effect with {where}, got {self.unit}; use unit=null"
        if self.mix and self.path is None:
            yield f"mix needs path, the first of the files, got {counted(len(self.mix), 'further file')}"
        if not (math.isfinite(self.chars_per_token) and self.chars_per_token >= 0.1):
            yield f"chars_per_token must be at least 0.1, got {self.chars_per_token:g}"

    def _scale_problems(self) -> Iterator[str]:
        if not 0 < self.token_scale <= 1:
            yield f"token_scale must be above 0 and at most 1, got {self.token_scale:g}"
        elif not math.isclose(1 / self.token_scale, self.token_divisor, rel_tol=1e-6):
            nearest = f"1/{self.token_divisor}"
            yield f"token_scale must be one over a whole number ({nearest}?), got {self.token_scale:g}"
        elif self.trace_block_tokens >= 1 and self.trace_block_tokens % self.token_divisor:
            block = self.trace_block_tokens
            yield (
                f"token_scale must divide a block of block_tokens = {block} into whole tokens, "
                f"got {self.token_scale:g} ({block / self.token_divisor:g} tokens)"
            )


class ArrivalConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When the requests of the window arrive; at most one of rate, time_scale and load.

    Raises ValueError with one line for each field that is out of bounds or would be ignored.
    """

    process: Literal["trace", "poisson"] = "trace"
    """The trace's own stamps, or a Poisson process in the trace's order."""
    rate: float | None = None
    """Mean requests per second; with process=trace the gaps are scaled to it."""
    time_scale: float | None = None
    """Factor on every gap between arrivals: 0.5 doubles the rate."""
    load: float | None = None
    """Offered work as a share of the pool's capacity; replaced by a rate once that is measured."""
    jitter: Literal["none", "uniform_tick"] = "none"
    """Leave the trace's ticks as they are, or spread each evenly over tick_s, keeping the order."""
    tick_s: float = 3.05
    """Distance of the trace's ticks, before scaling; for jitter only [s]."""
    closed_loop: bool = False
    """A session's next turn waits for the answer before it, and the pause after it if the trace tells one."""
    patience_s: float | None = None
    """A client cancels its request that has no first token so long after its arrival; None: never [s]."""

    def __post_init__(self) -> None:
        _raise_all(self._problems())

    def at_rate(self, rate: float) -> "ArrivalConfig":
        """Return these arrivals at *rate* requests per second instead of a load or time scale."""
        return structs.replace(self, rate=rate, load=None, time_scale=None)

    def _problems(self) -> Iterator[str]:
        speeds = {"rate": self.rate, "time_scale": self.time_scale, "load": self.load}
        given = {key: value for key, value in speeds.items() if value is not None}
        if len(given) > 1:
            spelled = ", ".join(f"{key}={value:g}" for key, value in given.items())
            yield f"rate, time_scale and load exclude one another, got {spelled}"
        for key, value in given.items():
            if not _is_positive(value):
                yield f"{key} must be above 0, got {value:g}"
        if not (math.isfinite(self.tick_s) and self.tick_s >= 1e-9):  # a nanosecond
            yield f"tick_s must be at least 1e-09, got {self.tick_s:g}"
        if self.patience_s is not None and not (math.isfinite(self.patience_s) and self.patience_s >= 1e-9):
            yield f"patience_s must be at least 1e-09, got {self.patience_s:g}"
        if self.process == "poisson":
            yield from self._poisson_problems()

    def _poisson_problems(self) -> Iterator[str]:
        if self.time_scale is not None:
            yield f"time_scale has no effect with process=poisson, got {self.time_scale:g}; set rate"
        elif self.rate is None and self.load is None:
            yield "rate or load must be set for process=poisson, got neither"
        if self.jitter != "none":
            yield f"jitter must be none with process=poisson, got {self.jitter}"


class SloBucket(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The TTFT promised to prompts below one length (Table 2)."""

    below_tokens: int | None = None
    """Prompts shorter than this and not in an earlier bucket; None: all the rest [tokens]."""
    ttft_s: float
    """tau: the TTFT that counts as met [s]."""


class SloConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Latency targets by prompt length (sec. 3.3, Table 2).

    Raises ValueError with one line for each bucket or target that is out of bounds.
    """

    buckets: tuple[SloBucket, ...]
    """Ascending in below_tokens; the last one is open."""
    tpot_s: float | None = None
    """delta: mean time per output token after the first that counts as met; None: no target [s]."""

    def __post_init__(self) -> None:
        _raise_all(self._problems())

    def bounds(self, token_scale: float = 1.0) -> tuple[Tokens | None, ...]:
        """Return each bucket's upper length, exclusive, in tokens of the scaled trace."""
        return tuple(
            None if bucket.below_tokens is None else max(1, round(bucket.below_tokens * token_scale))
            for bucket in self.buckets
        )

    def ttft_target_ns(self, input_tokens: Tokens, token_scale: float = 1.0) -> Nanoseconds:
        """Return tau for a prompt of *input_tokens* of the scaled trace [ns]."""
        for bucket, bound in zip(self.buckets, self.bounds(token_scale), strict=True):
            if bound is None or input_tokens < bound:
                return to_ns(bucket.ttft_s)
        raise AssertionError("the last bucket is open")  # __post_init__ saw to it

    def tpot_target_ns(self) -> Nanoseconds | None:
        """Return delta [ns]; None where no target is set."""
        return None if self.tpot_s is None else to_ns(self.tpot_s)

    def _problems(self) -> Iterator[str]:
        bounds = [bucket.below_tokens for bucket in self.buckets]
        if not bounds or bounds[-1] is not None:
            yield f"buckets must end with one without below_tokens, got {bounds}"
        closed = [bound for bound in bounds[:-1] if bound is not None]
        if len(closed) < len(bounds) - 1:
            yield f"buckets must have below_tokens in all but the last one, got {bounds}"
        if any(later <= earlier for earlier, later in pairwise([0, *closed])):
            yield f"buckets must ascend in below_tokens from above 0, got {bounds}"
        for bucket in self.buckets:
            if not _is_positive(bucket.ttft_s):
                yield f"buckets.ttft_s must be above 0, got {bucket.ttft_s:g}"
        if self.tpot_s is not None and not _is_positive(self.tpot_s):
            yield f"tpot_s must be above 0, got {self.tpot_s:g}"


def _is_positive(number: float) -> bool:
    return math.isfinite(number) and number > 0


def _raise_all(problems: Iterator[str]) -> None:
    found = list(problems)
    if found:
        raise ValueError("\n".join(found))
