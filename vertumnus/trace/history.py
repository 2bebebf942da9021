"""A historical slice: requests like those of a run, to choose its first composition for (sec. 6.1).

A run that is sized on the requests that it is judged on looks better than it is. So a slice is the
workload's warm-up, another seed of its generator, or another time; ``in_sample`` says that more is meant.
"""

from collections.abc import Iterator
from math import ceil, inf
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import Struct, structs

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.trace.arrivals import mean_rate
from vertumnus.trace.config import ArrivalConfig, WorkloadConfig
from vertumnus.trace.load import LoadedTrace, load_rows


class GivenComposition(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="given"
):
    """The first composition is that of the cluster."""

    reason: str = ""
    """Why this one, for the records; filled in where a slice decided."""


class WorkloadHead(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="head"
):
    """The workload's own first requests."""

    share: float | None = None
    """Share of the requests, by arrival, in (0, 1]; None: as much as metrics leave out as warm-up."""
    in_sample: bool = False
    """Whether the slice may reach into the part of the run that is judged."""

    def __post_init__(self) -> None:
        if self.share is not None and not 0.0 < self.share <= 1.0:
            raise ValueError(f"share must be in (0, 1], got {self.share}")


class OtherSeed(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="other_seed"
):
    """The workload as its generator draws it with another seed; the same window of it."""

    seed: int
    """Of generator and arrivals, at least 0."""
    in_sample: bool = False
    """Whether the run's own seed is meant."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")


class OtherTrace(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="other_trace"
):
    """A trace file laid out as the workload's, or another time of the very same file."""

    path: str
    """The file."""
    start_s: float = 0.0
    """Start of the slice, from the file's first request, before any scaling [s]."""
    duration_s: float | None = None
    """Length of the slice before any scaling; None: to the end of the file [s]."""
    in_sample: bool = False
    """Whether the slice may overlap with what the run replays."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.start_s < inf:
            raise ValueError(f"start_s must be at least 0, got {self.start_s:g}")
        if self.duration_s is not None and not 0.0 < self.duration_s < inf:
            raise ValueError(f"duration_s must be above 0, got {self.duration_s:g}")


History: TypeAlias = WorkloadHead | OtherSeed | OtherTrace
InitialConfig: TypeAlias = GivenComposition | History


class Slice(NamedTuple):
    """A historical slice, read."""

    trace: LoadedTrace
    rate: float
    """Mean arrivals [req/s]."""


def history_problems(
    history: History, workload: WorkloadConfig, seed: int, warmup_share: float
) -> Iterator[str]:
    """Yield why *history* cannot, or must not, size a run of *workload* with *seed*."""
    match history:
        case WorkloadHead():
            yield from _head_problems(history, warmup_share)
        case OtherSeed():
            if workload.path is not None:
                yield (
                    f"initial.name: found other_seed, but {workload.path} (workload.path) is no generator's; "
                    "use initial=head or initial=other_trace"
                )
            elif history.seed == seed and not history.in_sample:
                yield _in_sample(f"initial.seed: found {seed}, the run's own seed", "another seed")
        case OtherTrace():
            if _overlaps(history, workload) and not history.in_sample:
                found = f"initial.path: found {history.path}, the run's own file in an overlapping window"
                yield _in_sample(found, "initial.start_s and initial.duration_s of another time")


def read_slice(
    history: History, workload: WorkloadConfig, arrival: ArrivalConfig, seed: int, warmup_share: float
) -> Slice:
    """Return the requests of *history*, arriving as the run's do (*arrival*, no load).

    Raises ConfigError when they cannot be had, or span no time.
    """
    match history:
        case WorkloadHead():
            loaded = _head(load_rows(workload, arrival, seed), history.share or warmup_share)
        case OtherSeed():
            loaded = load_rows(workload, arrival, history.seed)
        case OtherTrace():
            loaded = _of_other(history, workload, arrival, seed)
    loaded.require_times(arrival)
    rate = mean_rate(loaded.rows)
    if rate is None:
        raise ConfigError(
            f"initial: the slice holds {counted(len(loaded.rows), 'request')} at one instant "
            f"({loaded.description}); its demand needs at least two, at different times"
        )
    return Slice(loaded, rate)


def _head(loaded: LoadedTrace, share: float) -> LoadedTrace:
    count = max(1, ceil(share * len(loaded.rows) - 1e-9))
    return loaded._replace(
        rows=loaded.rows[:count], description=f"the first {count:,} of {loaded.description}"
    )


def _of_other(
    history: OtherTrace, workload: WorkloadConfig, arrival: ArrivalConfig, seed: int
) -> LoadedTrace:
    try:
        return load_rows(_other(history, workload), arrival, seed)
    except ConfigError as error:  # it speaks of the keys that it was given
        raise ConfigError(*map(_as_initial, error.problems)) from error


def _as_initial(problem: str) -> str:
    for key in OtherTrace.__struct_fields__:
        problem = problem.replace(f"workload.{key}", f"initial.{key}")
    return problem


def _other(history: OtherTrace, workload: WorkloadConfig) -> WorkloadConfig:
    return structs.replace(
        workload,
        path=history.path,
        mix=(),
        start_s=history.start_s,
        duration_s=history.duration_s,
        requests=None,
    )


def _head_problems(history: WorkloadHead, warmup_share: float) -> Iterator[str]:
    if history.share is None and warmup_share == 0.0:
        yield (
            "initial.share: found null, which is records.warmup_share, but that is 0; "
            "give a share, with initial.in_sample=true"
        )
    elif history.share is not None and history.share > warmup_share and not history.in_sample:
        yield _in_sample(
            f"initial.share: found {history.share:g}", f"at most records.warmup_share = {warmup_share:g}"
        )


def _in_sample(found: str, allowed: str) -> str:
    return (
        f"{found}: the run would be sized on requests that it is judged on; allowed: {allowed}, "
        "or initial.in_sample=true"
    )


def _overlaps(history: OtherTrace, workload: WorkloadConfig) -> bool:
    replayed = [] if workload.path is None else [workload.path, *workload.mix]
    if Path(history.path).resolve() not in [Path(path).resolve() for path in replayed]:
        return False
    slice_end, run_end = (
        _end(history.start_s, history.duration_s),
        _end(workload.start_s, workload.duration_s),
    )
    return history.start_s < run_end and workload.start_s < slice_end


def _end(start_s: float, duration_s: float | None) -> float:
    return inf if duration_s is None else start_s + duration_s
