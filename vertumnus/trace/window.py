"""The part of a trace that a run replays, chosen before any scaling."""

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter

from vertumnus.domain.units import to_ns
from vertumnus.trace.rows import TraceRow

_arrival = attrgetter("arrival_ns")


def window(
    rows: Sequence[TraceRow],
    start_s: float = 0.0,
    duration_s: float | None = None,
    requests: int | None = None,
) -> list[TraceRow]:
    """Return the rows that arrive in [start_s, start_s + duration_s), at most *requests* of them.

    Times count from the first row of *rows*, which ascend in arrival; every row of the window is
    there once, in order. Without a duration the window ends with the trace.
    """
    if not rows:
        return []
    start_ns = rows[0].arrival_ns + to_ns(start_s)
    first = bisect_left(rows, start_ns, key=_arrival)
    end = len(rows)
    if duration_s is not None:
        end = bisect_left(rows, start_ns + to_ns(duration_s), key=_arrival)
    if requests is not None:
        end = min(end, first + requests)
    return list(rows[first:end])
