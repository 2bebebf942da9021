"""The pool of prefill GPUs: CP groups, the lattice that they split and merge in, compositions.

A worker's identity is its group, a natural key: the same ranks at the same degree are the same
worker, and its incarnations differ by epoch (sec. 3.1, 6.2).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import Rank
from vertumnus.domain.wording import counted

MOST_GPUS = 65_536
"""Of one pool: each of its workers is looked at for every request."""


class CpGroup(NamedTuple):
    """The ranks ``first_rank .. first_rank + degree - 1`` working as one CP worker."""

    first_rank: Rank
    degree: int
    """C, a power of two."""

    @property
    def ranks(self) -> range:
        """The ranks of this group, lowest first."""
        return range(self.first_rank, self.first_rank + self.degree)

    @property
    def mask(self) -> int:
        """The ranks of this group as a bitmask."""
        return ((1 << self.degree) - 1) << self.first_rank

    @property
    def parent(self) -> "CpGroup":
        """The group that this one and its sibling form when they merge."""
        degree = 2 * self.degree
        return CpGroup(self.first_rank - self.first_rank % degree, degree)

    @property
    def sibling(self) -> "CpGroup":
        """The other half of the parent: the only group that this one can merge with."""
        return CpGroup(self.first_rank ^ self.degree, self.degree)

    @property
    def halves(self) -> tuple["CpGroup", "CpGroup"]:
        """The two groups that this one splits into (its degree must be at least 2)."""
        half = self.degree // 2
        return CpGroup(self.first_rank, half), CpGroup(self.first_rank + half, half)

    def __str__(self) -> str:
        return f"{self.first_rank}x{self.degree}"


def group_named(name: str) -> CpGroup:
    """Return the group that *name*, ``<first rank>x<degree>``, stands for. Raises ValueError for another."""
    first, _, degree = name.partition("x")
    if not (first.isdecimal() and degree.isdecimal() and int(degree) > 0):
        raise ValueError(f"workers must be named <first rank>x<degree> as 0x4, got {name}")
    return CpGroup(int(first), int(degree))


def is_power_of_two(number: int) -> bool:
    """Return whether *number* is 1, 2, 4, ..."""
    return number > 0 and number & (number - 1) == 0


class Lattice(NamedTuple):
    """Every group that the pool may form: aligned, inside a node, of a supported degree (sec. 8)."""

    gpus: int
    """G, constant over a run."""
    degrees: tuple[int, ...]
    """Supported CP degrees, ascending powers of two."""
    ranks_per_node: int

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the pool itself; nothing when it can be built."""
        if not 1 <= self.gpus <= MOST_GPUS:
            yield f"cluster.gpus: found {self.gpus}, must be at least 1 and at most {MOST_GPUS:,}"
        if not self.degrees:
            yield "cluster.degrees: found an empty list, needs at least one CP degree"
        if list(self.degrees) != sorted(set(self.degrees)):
            yield f"cluster.degrees: found {list(self.degrees)}, must ascend without repeats"
        if not is_power_of_two(self.ranks_per_node):
            yield f"cluster.ranks_per_node: found {self.ranks_per_node}, must be a power of two"
        for degree in self.degrees:
            if not is_power_of_two(degree):
                yield f"cluster.degrees: found {degree}, each degree must be a power of two (1, 2, 4, ...)"
            elif degree > self.ranks_per_node:
                yield (
                    f"cluster.degrees: found {degree}, a group must fit a node of "
                    f"{counted(self.ranks_per_node, 'rank')} (cluster.ranks_per_node)"
                )

    def has_place_for(self, group: CpGroup) -> bool:
        """Return whether *group* is ranks of the pool in an aligned power of two, of whatever degree."""
        first, degree = group
        return is_power_of_two(degree) and 0 <= first <= self.gpus - degree and first % degree == 0

    def groups(self) -> tuple[CpGroup, ...]:
        """Return every group of the lattice, by degree, then first rank."""
        return tuple(
            CpGroup(first, degree)
            for degree in self.degrees
            for first in range(0, self.gpus - degree + 1, degree)
        )


class Composition(NamedTuple):
    """The workers of the pool at one time, by first rank; the sum of their degrees is G (sec. 3.1)."""

    workers: tuple[CpGroup, ...]

    @classmethod
    def of_counts(cls, counts: Mapping[int, int], lattice: Lattice) -> "Composition":
        """Lay out *counts* workers of each degree on the lattice, largest degrees first.

        Largest first keeps every group aligned without gaps. Raises ConfigError with every problem
        when a degree is not supported, a count is negative, or the degrees do not add up to G.
        """
        problems = [*lattice.problems(), *_count_problems(counts, lattice)]
        if problems:
            raise ConfigError(*problems)
        workers, first_rank = [], 0
        for degree in sorted(counts, reverse=True):
            for _ in range(counts[degree]):
                workers.append(CpGroup(first_rank, degree))
                first_rank += degree
        return cls(tuple(workers))

    def counts(self) -> dict[int, int]:
        """Return the number of workers of each degree present, ascending by degree."""
        present = sorted({worker.degree for worker in self.workers})
        return {d: sum(w.degree == d for w in self.workers) for d in present}

    def __str__(self) -> str:
        return " + ".join(f"{count} x CP{degree}" for degree, count in self.counts().items())


def covers(workers: Iterable[CpGroup], out_of_service: Iterable[Rank], gpus: int) -> bool:
    """Return whether *workers* and the ranks *out_of_service* are exactly the G ranks, each once."""
    ranks = [rank for worker in workers for rank in worker.ranks]
    return sorted([*ranks, *out_of_service]) == list(range(gpus))


def _count_problems(counts: Mapping[int, int], lattice: Lattice) -> Iterator[str]:
    for degree, count in sorted(counts.items()):
        if count != 0 and degree not in lattice.degrees:
            yield (
                f"cluster.composition.{degree}: degree {degree} is not supported here; "
                f"allowed: {list(lattice.degrees)} (cluster.degrees)"
            )
        if count < 0:
            yield f"cluster.composition.{degree}: found {counted(count, 'worker')}, must be at least 0"
    total = sum(degree * count for degree, count in counts.items())
    if total != lattice.gpus:
        spelled = " + ".join(f"{n}*{d}" for d, n in sorted(counts.items())) or "nothing"
        yield (
            f"cluster.composition: the degrees add up to {total} ({spelled}), "
            f"must equal cluster.gpus = {lattice.gpus}"
        )
