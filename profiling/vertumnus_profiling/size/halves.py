"""The trace in two halves of equal time: one to size on, one that comes after it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import to_ns, to_seconds
from vertumnus.domain.wording import counted
from vertumnus.run.stream import load_stream
from vertumnus.trace.arrivals import mean_rate
from vertumnus.trace.config import ArrivalConfig
from vertumnus.trace.rows import TraceRow

MOST_REQUESTS = 8_000
"""Of each half, the first so many; longer traces are cut, so that an answer takes minutes."""
LEAST_REQUESTS = 100
"""Of each half; fewer say nothing."""


class Half(NamedTuple):
    """One half of the trace, as a part of a config's tree."""

    window: Mapping[str, Any]
    requests: int
    rate: float
    """Mean arrivals by its own stamps [req/s]."""

    def of(self, tree: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plain tree of a config with this half as its workload."""
        return {**tree, "workload": {**tree["workload"], **self.window}}


def halves(config: RunConfig) -> tuple[Half, Half]:
    """Return both halves of the workload's window. Raises ConfigError when there is too little of it."""
    rows = load_stream(structs.replace(config, arrival=ArrivalConfig())).rows
    workload = config.workload
    half_s = (workload.duration_s or to_seconds(rows[-1].arrival_ns)) / 2
    cut = sum(row.arrival_ns < to_ns(half_s) for row in rows)
    end_s = None if workload.duration_s is None else half_s
    return (
        _half(rows[:cut], {"start_s": workload.start_s, "duration_s": half_s}, "first"),
        _half(rows[cut:], {"start_s": workload.start_s + half_s, "duration_s": end_s}, "second"),
    )


def _half(rows: Sequence[TraceRow], window: Mapping[str, Any], which: str) -> Half:
    rate = mean_rate(rows)
    if len(rows) < LEAST_REQUESTS or rate is None:
        raise ConfigError(
            f"workload: the {which} half of the trace has {counted(len(rows), 'request')}, each half must "
            f"have at least {LEAST_REQUESTS}, and not all at one instant"
        )
    requests = min(len(rows), MOST_REQUESTS)
    return Half({**window, "requests": requests}, requests, rate)
