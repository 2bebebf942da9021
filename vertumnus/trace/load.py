"""The one way from a workload's config to the rows of a run: source, window, lengths, arrivals."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import Tokens
from vertumnus.domain.wording import counted
from vertumnus.trace.arrivals import with_arrivals
from vertumnus.trace.config import ArrivalConfig, WorkloadConfig
from vertumnus.trace.files import Result, TraceFiles, from_files
from vertumnus.trace.formats.prompts import Usage
from vertumnus.trace.formats.reader import MOST_PROBLEMS
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


class Passing:
    """The rows of a workload's window on their way, at the trace's own times; iterate once."""

    def __init__(self, workload: WorkloadConfig, source: TraceFiles | Iterable[TraceRow], name: str) -> None:
        self._workload = workload
        self._files = source if isinstance(source, TraceFiles) else None
        self._counted = Counted(source)
        self._name = name
        self._passed = 0

    @property
    def has_times(self) -> bool:
        """Whether rows have times of their own; known when they have passed, as is what follows."""
        return self._files is None or self._files.has_times

    @property
    def skipped(self) -> int:
        """Bad rows that were left out."""
        return self._files.skipped if self._files else 0

    @property
    def empty(self) -> int:
        """Rows without output, which were dropped or given one token."""
        return self._files.empty if self._files else 0

    @property
    def usage(self) -> Usage | None:
        """What a log of prompts says of its lengths; None where it says nothing."""
        return self._files.usage if self._files else None

    def __iter__(self) -> Iterator[TraceRow]:
        workload, divisor = self._workload, self._workload.token_divisor
        rows = window(self._counted, workload.start_s, workload.duration_s, workload.requests)
        for row in rows:
            self._passed += 1
            yield row if divisor == 1 else shrink(row, divisor)
        if not self._passed:
            raise ConfigError(self._empty_window())

    def description(self) -> str:
        """Return one line: the source, how much of it, and its scale."""
        parts = [self._name, f"{self._passed:,} of {counted(self._counted.rows, 'request')}"]
        if self.skipped:
            parts.append(f"{counted(self.skipped, 'bad row')} skipped")
        if self.empty:
            done = "kept with one token" if self._workload.empty_outputs == "keep" else "dropped"
            parts.append(f"{counted(self.empty, 'row')} without output {done}")
        if self._workload.token_divisor != 1:
            parts.append(f"lengths / {self._workload.token_divisor}")
        return ", ".join(parts)

    def _empty_window(self) -> str:
        workload = self._workload
        end = "the end" if workload.duration_s is None else f"+{workload.duration_s:g} s"
        return (
            f"workload.start_s: no request arrives from {workload.start_s:g} s to {end}; "
            f"the trace spans {duration(self._counted.span_ns)}"
        )


def load_rows(workload: WorkloadConfig, arrival: ArrivalConfig, seed: int) -> LoadedTrace:
    """Return the rows of *workload* arriving as *arrival* says; the same for the same seed.

    Raises ConfigError when the file is missing or bad, what the config declares does not fit it, the
    window holds no request, or the arrivals cannot be had.
    """
    loaded = pass_rows(workload, seed, lambda passing: _held(passing, workload))
    return loaded._replace(rows=with_arrivals(loaded.rows, arrival, seed))


def pass_rows(
    workload: WorkloadConfig,
    seed: int,
    use: Callable[[Passing], Result],
    most_problems: int = MOST_PROBLEMS,
) -> Result:
    """Return what *use* makes of the rows of *workload*; it is called again where they must be held to sort.

    Raises ConfigError as `load_rows`, when *use* has taken all rows.
    """
    if workload.path is None:
        return use(
            Passing(workload, generated(workload, seed), f"{workload.generator} generator, seed {seed}")
        )
    return from_files(workload, lambda files: use(Passing(workload, files, files.name)), most_problems)


def _held(passing: Passing, workload: WorkloadConfig) -> LoadedTrace:
    rows = list(passing)
    return LoadedTrace(
        rows, passing.skipped, workload.scaled_block_tokens, passing.description(), passing.has_times
    )
