"""The one way from a workload's config to the rows of a run: source, window, lengths, arrivals."""

from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import Tokens
from vertumnus.trace.arrivals import with_arrivals
from vertumnus.trace.config import ArrivalConfig, WorkloadConfig
from vertumnus.trace.files import TraceFiles, from_files
from vertumnus.trace.generators import generated
from vertumnus.trace.plausible import duration
from vertumnus.trace.rows import TraceRow, shrink
from vertumnus.trace.window import Counted, window


class LoadedTrace(NamedTuple):
    """The rows that a run replays, each once and in this order, and where they come from."""

    rows: list[TraceRow]
    skipped: int
    """Bad rows of the file that were left out."""
    block_tokens: Tokens
    """Of the rows, that is after token_scale."""
    description: str
    """One line: the source, how much of it, and its scale; `describe_arrivals` tells the rest."""
    has_times: bool = True
    """Whether rows have times of their own; without them all arrive at once unless a process is asked for."""

    def require_times(self, arrival: ArrivalConfig) -> None:
        """Raise ConfigError when *arrival* needs times that the trace does not have."""
        if arrival.process == "trace" and not self.has_times:
            raise ConfigError(
                f"arrival.process: found trace, but {self.description} has no times; "
                "use arrival.process=poisson with arrival.rate or arrival.load"
            )


class _Source(NamedTuple):
    """The window of a trace, and what else there was."""

    rows: list[TraceRow]
    total: int
    name: str
    skipped: int = 0
    remarks: str = ""
    has_times: bool = True


def load_rows(workload: WorkloadConfig, arrival: ArrivalConfig, seed: int) -> LoadedTrace:
    """Return the rows of *workload* arriving as *arrival* says; the same for the same seed.

    Raises ConfigError when the file is missing or bad, what the config declares does not fit it, the
    window holds no request, or the arrivals cannot be had.
    """
    if workload.path is None:
        source = _generated(workload, seed)
    else:
        source = from_files(workload, lambda files: _read(workload, files))
    rows = with_arrivals(source.rows, arrival, seed)
    if workload.token_divisor != 1:
        rows = [shrink(row, workload.token_divisor) for row in rows]
    return LoadedTrace(
        rows,
        source.skipped,
        workload.scaled_block_tokens,
        _description(source, workload.token_divisor),
        source.has_times,
    )


def _generated(workload: WorkloadConfig, seed: int) -> _Source:
    counted = Counted(generated(workload, seed))
    rows = _window(workload, counted)
    return _Source(rows, counted.rows, f"{workload.generator} generator, seed {seed}")


def _read(workload: WorkloadConfig, files: TraceFiles) -> _Source:
    counted = Counted(files)
    rows = _window(workload, counted)
    remarks = f", {files.skipped:,} bad rows skipped" if files.skipped else ""
    if files.empty:
        done = "kept with one token" if workload.empty_outputs == "keep" else "dropped"
        remarks += f", {files.empty:,} rows without output {done}"
    return _Source(rows, counted.rows, files.name, files.skipped, remarks, files.has_times)


def _window(workload: WorkloadConfig, counted: Counted) -> list[TraceRow]:
    rows = list(window(counted, workload.start_s, workload.duration_s, workload.requests))
    if not rows:
        end = "the end" if workload.duration_s is None else f"+{workload.duration_s:g} s"
        raise ConfigError(
            f"workload.start_s: no request arrives from {workload.start_s:g} s to {end}; "
            f"the trace spans {duration(counted.span_ns)}"
        )
    return rows


def _description(source: _Source, divisor: int) -> str:
    shortened = f", lengths / {divisor}" if divisor != 1 else ""
    return f"{source.name}, {len(source.rows):,} of {source.total:,} requests{source.remarks}{shortened}"
