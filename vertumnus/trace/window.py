"""The part of a trace that a run replays, chosen before any scaling."""

from collections.abc import Iterable, Iterator

from vertumnus.domain.units import Nanoseconds, to_ns
from vertumnus.trace.rows import TraceRow


class Counted:
    """Rows that are counted while they pass."""

    def __init__(self, rows: Iterable[TraceRow]) -> None:
        self._rows = rows
        self.rows = 0
        self.first_ns: Nanoseconds = 0
        self.last_ns: Nanoseconds = 0

    @property
    def span_ns(self) -> Nanoseconds:
        """From the first arrival to the last so far [ns]."""
        return self.last_ns - self.first_ns

    def __iter__(self) -> Iterator[TraceRow]:
        for row in self._rows:
            if self.rows == 0:
                self.first_ns = row.arrival_ns
            self.rows += 1
            self.last_ns = row.arrival_ns
            yield row


def window(
    rows: Iterable[TraceRow],
    start_s: float = 0.0,
    duration_s: float | None = None,
    requests: int | None = None,
) -> Iterator[TraceRow]:
    """Yield the rows that arrive in [start_s, start_s + duration_s), at most *requests* of them.

    Times count from the first row of *rows*, which ascend in arrival; every row of the window is
    there once, in order. Without a duration the window ends with the trace. *rows* are read to their end,
    so that what is wrong behind the window is found, too.
    """
    start_ns = end_ns = None
    inside = 0
    for row in rows:
        if start_ns is None:
            start_ns = row.arrival_ns + to_ns(start_s)
            end_ns = None if duration_s is None else start_ns + to_ns(duration_s)
        if row.arrival_ns < start_ns or (end_ns is not None and row.arrival_ns >= end_ns):
            continue
        if requests is None or inside < requests:
            inside += 1
            yield row
