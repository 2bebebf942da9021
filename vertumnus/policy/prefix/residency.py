"""What the workers hold as far as the control plane knows: their reports, which may be old (sec. 7.1, 8).

A report counts once it has the set age, in the order in which reports were made, so the index is that of
a moment that has passed: a worker may have let go of what it seems to hold, or hold more. Either does no
harm: P is settled by the worker when a step starts, and a copy or a deletion that no longer fits is
refused. That a transfer has ended, or a worker is out of service, is known at once; what it held follows
with the reports.
"""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from vertumnus.domain.facts import Evicted
from vertumnus.domain.units import BlockKey, Blocks, Nanoseconds, Rank
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.statistics import PrefixStatistics


class Held(NamedTuple):
    """``path[first_block:]`` is resident, each block on the rank of *owners* that it came to."""

    path: tuple[BlockKey, ...]
    first_block: Blocks
    owners: tuple[Rank, ...]


class Lost(NamedTuple):
    """Ranks, a bitmask, whose memory is lost."""

    ranks: int


Report: TypeAlias = Held | Evicted | Lost


class Residency:
    """Brings reports into index and statistics, each when its time has come."""

    def __init__(self, index: PrefixIndex, statistics: PrefixStatistics, delay_ns: Nanoseconds = 0) -> None:
        self._index = index
        self._statistics = statistics
        self._delay_ns = delay_ns
        self._made: deque[tuple[Nanoseconds, Report]] = deque()
        """Reports that do not count yet, and when they were made."""

    def __len__(self) -> int:
        """Reports that do not count yet."""
        return len(self._made)

    def report(self, reports: Iterable[Report], now: Nanoseconds) -> None:
        """Take *reports* that workers make at *now*."""
        for report in reports:
            if self._delay_ns:
                self._made.append((now, report))
            else:
                self._count(report)

    def catch_up(self, now: Nanoseconds) -> None:
        """Count the reports that are old enough by *now*."""
        made = self._made
        while made and made[0][0] <= now - self._delay_ns:
            self._count(made.popleft()[1])

    def _count(self, report: Report) -> None:
        match report:
            case Held(path, first_block, owners):
                self._index.install(path, first_block, owners)
            case Evicted(rank, keys):
                self._statistics.note_unheld(self._index.evict(rank, keys))
            case Lost(ranks):
                self._statistics.note_unheld(self._index.forget(ranks))
