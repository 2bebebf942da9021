"""The one way from a workload's config to the rows of a run: source, window, lengths, arrivals."""

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import Tokens
from vertumnus.trace.arrivals import with_arrivals
from vertumnus.trace.config import ArrivalConfig, WorkloadConfig
from vertumnus.trace.generators import generated
from vertumnus.trace.mooncake import MooncakeReader
from vertumnus.trace.plausible import duration, unit_problem
from vertumnus.trace.rows import TraceRow, shrink
from vertumnus.trace.window import window


class LoadedTrace(NamedTuple):
    """The rows that a run replays, each once and in this order, and where they come from."""

    rows: list[TraceRow]
    skipped: int
    """Bad rows of the file that were left out."""
    block_tokens: Tokens
    """Of the rows, that is after token_scale."""
    description: str
    """One line: the source, how much of it, and its scale; `describe_arrivals` tells the rest."""


class _Source(NamedTuple):
    rows: list[TraceRow]
    skipped: int
    name: str


def load_rows(workload: WorkloadConfig, arrival: ArrivalConfig, seed: int) -> LoadedTrace:
    """Return the rows of *workload* arriving as *arrival* says; the same for the same seed.

    Raises ConfigError when the file is missing or bad, what the config declares does not fit it, the
    window holds no request, or the arrivals cannot be had.
    """
    source = _generated(workload, seed) if workload.path is None else _read(workload, Path(workload.path))
    rows = window(source.rows, workload.start_s, workload.duration_s, workload.requests)
    if not rows:
        raise ConfigError(_empty_window(workload, source.rows))
    rows = with_arrivals(rows, arrival, seed)
    if workload.token_divisor != 1:
        rows = [shrink(row, workload.token_divisor) for row in rows]
    description = _description(source, len(rows), workload.token_divisor)
    return LoadedTrace(rows, source.skipped, workload.scaled_block_tokens, description)


def _generated(workload: WorkloadConfig, seed: int) -> _Source:
    return _Source(generated(workload, seed), 0, f"{workload.generator} generator, seed {seed}")


def _read(workload: WorkloadConfig, path: Path) -> _Source:
    reader = MooncakeReader(path, workload.unit, workload.block_tokens, workload.bad_rows)
    rows = sorted(reader, key=attrgetter("arrival_ns"))  # stable: equal stamps keep the file's order
    if not rows:
        raise ConfigError(f"workload.path: {path} holds no request ({reader.skipped} bad rows skipped)")
    problem = unit_problem(rows, workload.unit)
    if problem:
        raise ConfigError(f"{problem} ({path})")
    return _Source(rows, reader.skipped, f"{path.name} ({workload.format}, {workload.unit})")


def _empty_window(workload: WorkloadConfig, rows: Sequence[TraceRow]) -> str:
    end = "the end" if workload.duration_s is None else f"+{workload.duration_s:g} s"
    return (
        f"workload.start_s: no request arrives from {workload.start_s:g} s to {end}; "
        f"the trace spans {duration(rows[-1].arrival_ns - rows[0].arrival_ns)}"
    )


def _description(source: _Source, requests: int, divisor: int) -> str:
    shortened = f", lengths / {divisor}" if divisor != 1 else ""
    return f"{source.name}, {requests:,} of {len(source.rows):,} requests{shortened}"
