"""When the rows of a window arrive: the trace's stamps, rescaled or smoothed, or a Poisson process.

The rows stay in the trace's order whatever is done to their times, and the first arrives at 0.
"""

from collections.abc import Sequence

import numpy as np

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND, Nanoseconds, to_ns
from vertumnus.domain.wording import counted
from vertumnus.trace.config import ArrivalConfig
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.sampling import stream

LONGEST_S = 1e8
"""The last of all requests arrives before that on average: three years, and all times fit the tables [s]."""


def with_arrivals(rows: Sequence[TraceRow], arrival: ArrivalConfig, seed: int) -> list[TraceRow]:
    """Return *rows* at the times that *arrival* asks for.

    Raises ConfigError when a load was not replaced by a rate, when a rate is asked of rows that all share one
    stamp, or when the last request would arrive after `LONGEST_S`.
    """
    if arrival.load is not None:
        raise ConfigError(
            f"arrival.load: found {arrival.load:g}, which only a run that measures its capacity "
            "can turn into a rate; set arrival.rate"
        )
    if not rows:
        return []
    _require_an_end(rows, arrival)
    times = _times([row.arrival_ns for row in rows], arrival, seed)
    return [row._replace(arrival_ns=time) for row, time in zip(rows, times, strict=True)]


def mean_rate(rows: Sequence[TraceRow] | Sequence[Request]) -> float | None:
    """Return the mean arrival rate, gaps over span [req/s]; None where nothing spans any time."""
    span_ns = rows[-1].arrival_ns - rows[0].arrival_ns if rows else 0
    return (len(rows) - 1) * SECOND / span_ns if span_ns else None


def describe_arrivals(rows: Sequence[TraceRow], arrival: ArrivalConfig) -> str:
    """Return the arrival process that *rows* really have, with its mean rate, in one line."""
    parts = ["Poisson arrivals" if arrival.process == "poisson" else "arrivals of the trace"]
    if arrival.time_scale is not None:
        parts.append(f"gaps x {arrival.time_scale:g}")
    if arrival.jitter != "none":
        parts.append(f"spread over ticks of {arrival.tick_s:g} s")
    if arrival.closed_loop:
        parts.append("follow-ups after the answer before them")
    if arrival.patience_s is not None:
        parts.append(f"given up after {arrival.patience_s:g} s without a first token")
    rate = mean_rate(rows)
    if rate is not None:
        parts.append(f"{rate:.3g} req/s")
    return ", ".join(parts)


def _require_an_end(rows: Sequence[TraceRow], arrival: ArrivalConfig) -> None:
    if arrival.rate is not None:
        span_s, found = (len(rows) - 1) / arrival.rate, f"{arrival.rate:g} requests/s"
    else:
        span_s, found = (rows[-1].arrival_ns - rows[0].arrival_ns) / SECOND, "the trace's own times"
        if arrival.jitter == "uniform_tick":
            span_s, found = span_s + arrival.tick_s, f"tick_s {arrival.tick_s:g}"
        if arrival.time_scale is not None:
            span_s, found = span_s * arrival.time_scale, f"time_scale {arrival.time_scale:g}"
    if span_s > LONGEST_S:
        requests = counted(len(rows), "request")
        raise ConfigError(
            f"arrival: found {found}, so that {requests} would take {span_s:.3g} s to arrive; "
            f"must be at most {LONGEST_S:g} s"
        )


def _times(stamps: list[Nanoseconds], arrival: ArrivalConfig, seed: int) -> list[Nanoseconds]:
    if arrival.process == "poisson" and arrival.rate is not None:
        return _poisson(len(stamps), arrival.rate, seed)
    if arrival.jitter == "uniform_tick":
        stamps = _spread(stamps, to_ns(arrival.tick_s), seed)
    stamps = [stamp - stamps[0] for stamp in stamps]
    if arrival.time_scale is not None:
        return [round(stamp * arrival.time_scale) for stamp in stamps]
    return stamps if arrival.rate is None else _at_rate(stamps, arrival.rate)


def _poisson(count: int, rate: float, seed: int) -> list[Nanoseconds]:
    gaps_s = stream(seed, "poisson arrivals").exponential(1 / rate, count - 1)
    return [0, *np.rint(np.cumsum(gaps_s) * SECOND).astype(np.int64).tolist()]


def _spread(stamps: list[Nanoseconds], tick_ns: Nanoseconds, seed: int) -> list[Nanoseconds]:
    """Return each stamp moved into the tick that it opens; the k-th row takes the k-th time.

    Sorting the times and not the rows keeps requests of one tick in their order, so that a
    follow-up never overtakes the turn that it extends.
    """
    offsets = stream(seed, "arrival jitter").integers(0, tick_ns, len(stamps))
    times: list[Nanoseconds] = np.sort(np.array(stamps, dtype=np.int64) + offsets).tolist()
    return times


def _at_rate(stamps: list[Nanoseconds], rate: float) -> list[Nanoseconds]:
    if len(stamps) == 1:
        return stamps
    span_ns = stamps[-1]
    if span_ns == 0:
        raise ConfigError(
            f"arrival: all {counted(len(stamps), 'request')} of the window arrive at once, so that no "
            f"gap can be scaled "
            f"to {rate:.4g} requests/s (arrival.rate, or arrival.load); use arrival.process=poisson, "
            "arrival.jitter=uniform_tick or more requests (workload.requests)"
        )
    wanted_ns = to_ns((len(stamps) - 1) / rate)
    return [stamp * wanted_ns // span_ns for stamp in stamps]
