"""The rows of a workload's trace files in order of arrival, streamed: one file, or several merged."""

import heapq
from array import array
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from vertumnus.domain.errors import ConfigError, VertumnusError
from vertumnus.domain.wording import counted
from vertumnus.trace.config import WorkloadConfig
from vertumnus.trace.formats.prompts import Usage
from vertumnus.trace.formats.reader import MOST_PROBLEMS, TraceReader
from vertumnus.trace.plausible import unit_problem
from vertumnus.trace.rows import TraceRow

REORDER_ROWS = 10_000
"""A row may stand this many rows too late in its file before all of it has to be held to sort it."""
UNIT_ROWS = 100_000
"""The unit of time is checked on this many rows."""
_arrival = attrgetter("arrival_ns")
Result = TypeVar("Result")


class OutOfOrder(VertumnusError):
    """A file's rows are too far from the order of their times to be sorted on the way."""


class TraceFiles:
    """The rows of the workload's files, ascending in time, equal times in the files' order; iterate once.

    Raises ConfigError as the readers do, when a file holds no row, or when the stamps cannot be in the
    declared unit; OutOfOrder when rows need to be held and *holds_all* does not allow it.
    """

    def __init__(
        self, workload: WorkloadConfig, holds_all: bool = False, most_problems: int = MOST_PROBLEMS
    ) -> None:
        assert workload.path is not None
        self.workload = workload
        self._paths = [Path(path) for path in (workload.path, *workload.mix)]
        if workload.url is not None and not self._paths[0].exists():
            raise ConfigError(
                f"workload.path: no file {workload.path!r} yet; "
                f"vertumnus trace download {workload.name} fetches it"
            )
        self._readers = [TraceReader(workload, path, most_problems) for path in self._paths]
        self._holds_all = holds_all

    @property
    def name(self) -> str:
        """The files and how they are read."""
        unit = self.workload.stamp_unit
        read_as = self.workload.format if unit is None else f"{self.workload.format}, {unit}"
        return f"{' + '.join(path.name for path in self._paths)} ({read_as})"

    @property
    def skipped(self) -> int:
        """Bad rows left out so far."""
        return sum(reader.skipped for reader in self._readers)

    @property
    def empty(self) -> int:
        """Rows without output so far."""
        return sum(reader.empty for reader in self._readers)

    @property
    def has_times(self) -> bool:
        """Whether rows have times of their own; known when they are read."""
        return all(reader.has_times for reader in self._readers)

    @property
    def usage(self) -> Usage | None:
        """What logs of prompts say of their lengths; None where they say nothing."""
        found = [reader.usage for reader in self._readers if reader.usage is not None]
        return Usage(*map(sum, zip(*found, strict=True))) if found else None

    def __iter__(self) -> Iterator[TraceRow]:
        traces = [self._ordered(place) for place in range(len(self._readers))]
        if len(traces) == 1:
            return traces[0]
        return heapq.merge(*map(_namespaced, traces, range(len(traces))), key=_arrival)

    def _ordered(self, place: int) -> Iterator[TraceRow]:
        reader, path, stamps = self._readers[place], self._paths[place], array("q")
        rows = sorted(reader, key=_arrival) if self._holds_all else in_order(reader, REORDER_ROWS)
        for row in rows:
            if len(stamps) < UNIT_ROWS:
                stamps.append(row.arrival_ns)
            yield row
        if not stamps:
            raise ConfigError(
                f"workload.path: {path} holds no request ({counted(reader.skipped, 'bad row')} skipped)"
            )
        unit = self.workload.stamp_unit
        problem = None if unit is None else unit_problem(stamps, unit)
        if problem:
            raise ConfigError(f"{problem} ({path})")


def from_files(
    workload: WorkloadConfig, use: Callable[[TraceFiles], Result], most_problems: int = MOST_PROBLEMS
) -> Result:
    """Return what *use* makes of the workload's files; it is called again where they must be held to sort."""
    try:
        return use(TraceFiles(workload, most_problems=most_problems))
    except OutOfOrder:
        return use(TraceFiles(workload, holds_all=True, most_problems=most_problems))


def in_order(rows: Iterable[TraceRow], held: int) -> Iterator[TraceRow]:
    """Yield *rows* ascending in time, equal times in their order, with at most *held* of them in memory.

    Raises OutOfOrder when a row stands further than that behind one that comes after it in time.
    """
    waiting: list[tuple[int, int, TraceRow]] = []
    latest_ns = -1
    for place, row in enumerate(rows):
        if row.arrival_ns < latest_ns:
            raise OutOfOrder(f"row {place} is more than {counted(held, 'row')} too late")
        entry = (row.arrival_ns, place, row)
        if len(waiting) < held:
            heapq.heappush(waiting, entry)
        else:
            latest_ns, _, first = heapq.heappushpop(waiting, entry)
            yield first
    while waiting:
        yield heapq.heappop(waiting)[2]


def _namespaced(rows: Iterator[TraceRow], place: int) -> Iterator[TraceRow]:
    """Yield *rows* counted from their first arrival, with ids and sessions that no other file has."""
    start_ns = None
    for row in rows:
        if start_ns is None:
            start_ns = row.arrival_ns
        yield row._replace(
            arrival_ns=row.arrival_ns - start_ns,
            block_ids=None if row.block_ids is None else _ids(row.block_ids, place),
            session=_named(row.session, place),
            follows=_named(row.follows, place),
        )


def _ids(block_ids: tuple[int, ...], place: int) -> tuple[int, ...]:
    return tuple(block_id << FILE_BITS | place for block_id in block_ids)


def _named(session: str | None, place: int) -> str | None:
    return None if session is None else f"{place}/{session}"


FILE_BITS = 16
"""Of a mixed trace's ids, those that tell the file."""
