"""Demand for prefixes by CP degree: access and missed (Algorithm 1), decayed at each scan (Algorithm 2).

Counters are lazy: a scan advances one number, and a counter is scaled when it is next touched. A
node without demand has no counter.
"""

from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

from msgspec import Struct

from vertumnus.domain.units import BlockKey, Nanoseconds


class Counter(Struct, gc=False):
    """Demand for one block at one degree, as of the scan in which it was last touched."""

    scan: int
    access: float = 0.0
    """Reuses by requests served at the degree."""
    missed_ns: float = 0.0
    """Predicted time lost by requests that preferred the degree and found no copy there [ns]."""


class Busy(NamedTuple):
    """Where demand is above a bound: (block, degree, demand)."""

    accessed: list[tuple[BlockKey, int, float]]
    """access[z, C] [reuses]."""
    missed: list[tuple[BlockKey, int, float]]
    """missed[z, C] [ns]."""


class Demand:
    """access[z, C] and missed[z, C] for every block with recent demand."""

    def __init__(self, decay: float, busy_access: float = inf, busy_missed_ns: float = inf) -> None:
        """Decay by *decay* a scan; a block is busy at a degree while it is above one of the other two."""
        self._powers = [1.0, decay]
        self._busy_access = busy_access
        self._busy_missed_ns = busy_missed_ns
        self._totals: dict[int, Counter] = {}
        self._accessed: dict[tuple[BlockKey, int], None] = {}
        self._missed: dict[tuple[BlockKey, int], None] = {}
        """(block, degree) that were above the bound when last counted, or looked for."""
        self.scan = 0
        """Decays so far."""
        self._counters: dict[BlockKey, dict[int, Counter]] = {}

    def __len__(self) -> int:
        return len(self._counters)

    def __contains__(self, key: BlockKey) -> bool:
        return key in self._counters

    def __iter__(self) -> Iterator[BlockKey]:
        """Yield the blocks with demand, in the order in which they first had it."""
        return iter(self._counters)

    def total(self, key: BlockKey) -> tuple[float, float]:
        """Return access and missed of the block now, over all degrees [reuses, ns]."""
        access = missed_ns = 0.0
        for counter in self._counters.get(key, {}).values():
            factor = self._aged(counter)
            access += counter.access * factor
            missed_ns += counter.missed_ns * factor
        return access, missed_ns

    def add_access(self, key: BlockKey, degree: int) -> None:
        """Count one reuse of the block at *degree* (Algorithm 1, line 2)."""
        counter = self._touch(key, degree)
        before = counter.access
        counter.access = before + 1.0
        if before <= self._busy_access < counter.access:
            self._accessed[key, degree] = None

    def add_missed(self, key: BlockKey, degree: int, benefit_ns: Nanoseconds) -> None:
        """Add the benefit that the block would have had at *degree* (Algorithm 1, line 9)."""
        counter = self._touch(key, degree)
        before = counter.missed_ns
        counter.missed_ns = before + benefit_ns
        if before <= self._busy_missed_ns < counter.missed_ns:
            self._missed[key, degree] = None

    def access(self, key: BlockKey, degree: int) -> float:
        """Return access[z, C] now."""
        counter = self._counter(key, degree)
        return 0.0 if counter is None else counter.access * self._aged(counter)

    def missed_ns(self, key: BlockKey, degree: int) -> float:
        """Return missed[z, C] now [ns]."""
        counter = self._counter(key, degree)
        return 0.0 if counter is None else counter.missed_ns * self._aged(counter)

    def add_totals(self, degree: int, accesses: int, missed_ns: Nanoseconds) -> None:
        """Add what a request has added to its blocks, all together, to the degree's totals."""
        total = self._totals.get(degree)
        if total is None:
            total = self._totals[degree] = Counter(self.scan)
        self._age(total)
        total.access += accesses
        total.missed_ns += missed_ns

    def total_access(self, degree: int) -> float:
        """Return access[z, C] summed over all blocks that were ever counted, now."""
        total = self._totals.get(degree)
        return 0.0 if total is None else total.access * self._aged(total)

    def total_missed_ns(self, degree: int) -> float:
        """Return missed[z, C] summed over all blocks that were ever counted, now [ns]."""
        total = self._totals.get(degree)
        return 0.0 if total is None else total.missed_ns * self._aged(total)

    def busy(self) -> Busy:
        """Return where access or missed is above its bound now."""
        busy = Busy(
            [
                (key, degree, access)
                for key, degree, counter in self._counted(self._accessed)
                if (access := counter.access * self._aged(counter)) > self._busy_access
            ],
            [
                (key, degree, missed_ns)
                for key, degree, counter in self._counted(self._missed)
                if (missed_ns := counter.missed_ns * self._aged(counter)) > self._busy_missed_ns
            ],
        )
        self._accessed = {(key, degree): None for key, degree, _ in busy.accessed}
        self._missed = {(key, degree): None for key, degree, _ in busy.missed}
        return busy

    def decay(self) -> None:
        """Scale every counter by the decay factor (Algorithm 2, lines 12-14)."""
        self.scan += 1

    def is_below(self, key: BlockKey, access: float, missed_ns: float) -> bool:
        """Return whether the block's demand at every degree is below both floors."""
        return self._most(key, access, missed_ns) < 1.0

    def scans_to_fade(self, key: BlockKey, access: float, missed_ns: float) -> int:
        """Return after how many decays from now, at least 1, the block is below both floors if left alone."""
        most, decay = self._most(key, access, missed_ns), self._powers[1]
        scans = 1
        while (most := most * decay) >= 1.0:
            scans += 1
        return scans

    def _most(self, key: BlockKey, access: float, missed_ns: float) -> float:
        """Return the block's largest demand now, over degrees and both kinds, in units of its floor."""
        most = 0.0
        for counter in self._counters.get(key, {}).values():
            share = max(counter.access / access, counter.missed_ns / missed_ns) * self._aged(counter)
            if share > most:
                most = share
        return most

    def forget(self, key: BlockKey) -> None:
        """Drop the block's counters."""
        self._counters.pop(key, None)

    def _counted(self, places: Iterable[tuple[BlockKey, int]]) -> Iterator[tuple[BlockKey, int, Counter]]:
        """Yield those of *places*, (block, degree), that were not forgotten, with their counters."""
        counters, nothing = self._counters, dict[int, Counter]()
        for key, degree in places:
            counter = counters.get(key, nothing).get(degree)
            if counter is not None:
                yield key, degree, counter

    def _counter(self, key: BlockKey, degree: int) -> Counter | None:
        by_degree = self._counters.get(key)
        return None if by_degree is None else by_degree.get(degree)

    def _touch(self, key: BlockKey, degree: int) -> Counter:
        by_degree = self._counters.get(key)
        if by_degree is None:
            by_degree = self._counters[key] = {}
        counter = by_degree.get(degree)
        if counter is None:
            counter = by_degree[degree] = Counter(self.scan)
        else:
            self._age(counter)
        return counter

    def _age(self, counter: Counter) -> None:
        if counter.scan != self.scan:
            factor = self._aged(counter)
            counter.access *= factor
            counter.missed_ns *= factor
            counter.scan = self.scan

    def _aged(self, counter: Counter) -> float:
        age, powers = self.scan - counter.scan, self._powers
        # by multiplication: pow() may differ between machines in the last bit (D9)
        while len(powers) <= age:
            powers.append(powers[-1] * powers[1])
        return powers[age]
