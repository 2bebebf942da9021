"""A workload whose rate and mix of lengths change by phase, as in Fig. 13.

Requests are those of the tool-agent generator, in its order, so that prefixes recur as they do there;
a phase only chooses between short and long ones and sets the rate. Arrivals are Poisson within a
phase. A generator's trace that is used up is followed by that of a far-off seed, whose ids are its own.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import merge

from msgspec import Struct

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import SECOND, Nanoseconds, Tokens
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.sampling import stream
from vertumnus.trace.tool_agent import tool_agent

MOST_REQUESTS = 10_000_000
"""Of one phase: all of them are made before the first is served, and take half a kilobyte each."""
PASSED_OVER = 50_000
"""Rows that are looked through for one of a kind; two whole traces, and what is in neither is in none."""


class Phase(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A stretch of time with one rate and one mix of lengths."""

    duration_s: float
    """Length of the phase [s]."""
    rate: float
    """Mean arrivals [requests/s]."""
    long_share: float | None = None
    """Share of requests of at least long_tokens; None takes the trace's own mix."""
    long_tokens: int = 24_576
    """What counts as long here [tokens of the unscaled trace]."""

    def __post_init__(self) -> None:
        if not 0.0 < self.duration_s < float("inf"):
            raise ValueError(f"duration_s must be above 0, got {self.duration_s}")
        if not 0.0 < self.rate < float("inf"):
            raise ValueError(f"rate must be above 0, got {self.rate}")
        if self.rate * self.duration_s > MOST_REQUESTS:
            most = f"{MOST_REQUESTS / self.duration_s:g} for a phase of {self.duration_s:g} s"
            raise ValueError(f"rate must be at most {most} ({MOST_REQUESTS:,} requests), got {self.rate:g}")
        if self.long_share is not None and not 0.0 <= self.long_share <= 1.0:
            raise ValueError(f"long_share must be in [0, 1], got {self.long_share}")
        if self.long_tokens < 1:
            raise ValueError(f"long_tokens must be at least 1, got {self.long_tokens}")


def phased(phases: Sequence[Phase], seed: int) -> list[TraceRow]:
    """Return the requests of *phases*, one after the other, in order of arrival."""
    random = stream(seed, "phases")
    source = _Source(seed)
    rows, start = [], 0.0
    for phase in phases:
        end = start + phase.duration_s
        at = start + random.exponential(1 / phase.rate)
        while at < end:
            is_long = None if phase.long_share is None else bool(random.random() < phase.long_share)
            rows.append(source.take(is_long, phase.long_tokens)._replace(arrival_ns=_ns(at)))
            at += random.exponential(1 / phase.rate)
        start = end
    return rows


def _ns(at_s: float) -> Nanoseconds:
    return round(at_s * SECOND)


SEEDS_APART = 1_000_000_007
"""From one seed's trace to the one that continues it; runs' seeds are nearer, so no two share requests."""


class _Source:
    """Rows of the tool-agent generator, the next one of a wanted kind at a time."""

    def __init__(self, seed: int) -> None:
        self._rows = enumerate(_endless(seed))
        self._passed: dict[bool, deque[tuple[int, TraceRow]]] = {True: deque(), False: deque()}
        self._bound: Tokens | None = None
        """What the rows passed over were last sorted by."""

    def take(self, is_long: bool | None, long_tokens: Tokens) -> TraceRow:
        """Return the next row that is long, or is not, or the next one of either kind.

        Raises ConfigError when there is none.
        """
        if is_long is None:
            return next(self._rows)[1]
        if long_tokens != self._bound:
            self._sort_by(long_tokens)
        waiting = self._passed[is_long]
        last = len(self._passed[not is_long]) + PASSED_OVER
        while not waiting:
            if len(self._passed[not is_long]) == last:
                kind = "has so many" if is_long else "is shorter"
                found = f"found {long_tokens}, but no request of the generator {kind}"
                raise ConfigError(f"workload.phases: long_tokens: {found}")
            place, row = next(self._rows)
            self._passed[row.input_tokens >= long_tokens].append((place, row))
        return waiting.popleft()[1]

    def _sort_by(self, long_tokens: Tokens) -> None:
        passed = merge(*self._passed.values())  # by their place in the trace, of which there is one each
        self._passed, self._bound = {True: deque(), False: deque()}, long_tokens
        for place, row in passed:
            self._passed[row.input_tokens >= long_tokens].append((place, row))


def _endless(seed: int) -> Iterator[TraceRow]:
    offset = 0
    while True:
        rows = tool_agent(seed)
        yield from (_renumbered(row, offset) for row in rows)
        offset += 1 + max(max(row.block_ids or (0,)) for row in rows)
        seed += SEEDS_APART


def _renumbered(row: TraceRow, offset: int) -> TraceRow:
    if not offset or row.block_ids is None:
        return row
    return row._replace(block_ids=tuple(block + offset for block in row.block_ids))
