"""What whoever replays a trace should know about it beforehand."""

from collections.abc import Iterator

import numpy as np

from vertumnus.domain.wording import counted
from vertumnus.trace.details import TraceDetails

TICK_SHARE = 0.5
"""With fewer distinct stamps than this share of the requests, arrivals are taken to be on ticks."""
ENOUGH_ROWS = 20
"""Below this many rows a few equal stamps say nothing."""
HEAD_RATE, HEAD_SHARE = 0.25, 0.1
"""A head is told that has less than this share of the mean rate for more than this share of the span."""


def remarks(details: TraceDetails, skipped: int = 0, empty: int = 0) -> list[str]:
    """Return one line for each thing to know; *skipped* bad rows and *empty* ones are not in *details*."""
    found = [*_ticks(details), *_head(details)]
    if empty:
        found.append(
            f"{counted(empty, 'row')} without an output token, failed requests mostly; "
            "empty_outputs says what becomes of them"
        )
    if skipped:
        found.append(f"{counted(skipped, 'bad row')} skipped; vertumnus trace lint names them")
    if details.oracle_reuse is None:
        found.append("no block ids: reuse is unknown, and hit rates of a run will be NULL")
    return found


def _ticks(details: TraceDetails) -> Iterator[str]:
    distinct = details.distinct_timestamps
    if details.requests < ENOUGH_ROWS or distinct >= TICK_SHARE * details.requests:
        return
    if distinct == 1:
        yield "all requests share one stamp, or have none; arrival.process=poisson spreads them"
    else:
        yield (
            f"ticks: {counted(details.requests, 'request')} share {counted(distinct, 'stamp')}, "
            f"{details.span_s / (distinct - 1):.3g} s apart on average, "
            f"up to {details.max_same_timestamp} at once; arrival.jitter=uniform_tick spreads them, "
            "which changes results and is recorded"
        )


def _head(details: TraceDetails) -> Iterator[str]:
    passed = np.cumsum([bin.requests for bin in details.over_time])
    until_s = details.bin_s * np.arange(1, len(passed) + 1)
    mean = details.requests / max(details.span_s, details.bin_s)
    slow = np.flatnonzero(passed / until_s < HEAD_RATE * mean)
    if len(slow) and until_s[slow[-1]] > HEAD_SHARE * details.span_s:
        end_s = until_s[slow[-1]]
        yield (
            f"a slow head: {passed[slow[-1]] / end_s:.2g} req/s in the first {end_s / 3_600:.3g} h, "
            f"{mean:.2g} req/s over all; start_s={end_s:g} leaves it out"
        )
