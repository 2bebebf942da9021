"""The composition to start from, out of a historical slice (sec. 6.1).

The paper lets the length distribution set the expected mixture of small and large degrees. Our reading:

- A request of the slice wants the degree at which its placement cost without load is least, as in
  sec. 7.1: E_C + lambda * (C * E_C - C_min * E_Cmin), a tie to the smaller degree. It occupies C * E_C
  of GPU time there. So for each degree C above the smallest a share of the slice's GPU time wants C or
  more, and that share of the pool is worth share * G / C workers.
- A composition is suitable when, for each such C, its workers of degree C or more hold no more GPUs than
  that many workers, rounded up, and there is at least one of them where half a worker or more is wanted.
  Fewer large workers than wanted stay suitable: capacity may demand it.
- Of the suitable compositions, those have enough capacity whose utilisation is at most 1 when the slice's
  requests, at the slice's mean rate, are spread over the degrees (`spread`). The one with most workers of
  the largest degree wins, then of the next. When none has enough, the largest total kappa wins, then again
  most large workers.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import ceil
from typing import NamedTuple

from vertumnus.domain.cluster import Composition, Lattice
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.sizes import SizeClass
from vertumnus.policy.reconfig.spread import spread


class Candidate(NamedTuple):
    """One legal composition under the slice."""

    composition: Composition
    capacity: float
    """Sum of kappa [s of work per s]."""
    demand: float
    """Predicted work of the slice where its requests are spread over these workers [s of work per s]."""
    utilisation: float
    """Of the fullest degree; above 1 it has not enough capacity."""
    unsuitable: str
    """Why the length distribution speaks against it; empty for a suitable one."""

    @property
    def is_enough(self) -> bool:
        """Whether it is suitable and carries the slice."""
        return not self.unsuitable and self.utilisation <= 1.0


class InitialChoice(NamedTuple):
    """The composition chosen, and what it was chosen for."""

    candidate: Candidate
    wanted_workers: dict[int, float]
    """By degree above the smallest: workers of that degree or more that the length distribution is worth."""

    @property
    def composition(self) -> Composition:
        """The composition to start from."""
        return self.candidate.composition

    @property
    def utilisation(self) -> float:
        """Of its fullest degree under the slice; above 1 no suitable composition has enough capacity."""
        return self.candidate.utilisation


class InitialRule:
    """Judges compositions for one slice."""

    def __init__(
        self,
        sizes: Sequence[SizeClass],
        span_ns: Nanoseconds,
        lattice: Lattice,
        capacity: Capacity,
        prefill_time: PrefillTimeModel,
        gpu_time_weight: float,
        longest_needs: int = 1,
    ) -> None:
        """Judge for requests of *sizes* that arrive within *span_ns*; *gpu_time_weight* is lambda.

        The longest prompt needs a worker of degree *longest_needs* or more to be held at all. Raises
        ConfigError when the slice is empty, no composition adds up to G, or kappa is missing.
        """
        if not sizes or span_ns <= 0:
            raise ConfigError("initial: the slice holds no request, a composition cannot be chosen for it")
        capacity.require(lattice.degrees)
        if next(compositions(lattice.gpus, lattice.degrees[::-1]), None) is None:
            raise ConfigError(
                f"cluster.gpus: found {lattice.gpus}, no workers of degrees {list(lattice.degrees)} "
                "(cluster.degrees) add up to it"
            )
        self._sizes = sizes
        self._span_ns = span_ns
        self._lattice = lattice
        self._capacity = capacity
        self._prefill_time = prefill_time
        wanted = _wanted_workers(sizes, lattice, prefill_time, gpu_time_weight)
        self.wanted_workers = {
            degree: max(worth, 1.0) if degree <= longest_needs else worth for degree, worth in wanted.items()
        }

    def choose(self) -> InitialChoice:
        """Return the composition to start from."""
        best: Candidate | None = None
        for counts in compositions(self._lattice.gpus, self._lattice.degrees[::-1]):
            if _unsuitable(counts, self.wanted_workers):
                continue
            candidate = self._candidate(counts)
            if candidate.is_enough:
                return InitialChoice(candidate, self.wanted_workers)
            if best is None or candidate.capacity > best.capacity:
                best = candidate
        assert best is not None, "the one with fewest large workers is suitable"
        return InitialChoice(best, self.wanted_workers)

    def ranking(self, most: int) -> list[Candidate] | None:
        """Return every legal composition, best first, `choose`'s at the head; None if more than *most*."""
        legal = list(islice(compositions(self._lattice.gpus, self._lattice.degrees[::-1]), most + 1))
        if len(legal) > most:
            return None
        return sorted(map(self._candidate, legal), key=_preference)  # stable: large workers first

    def _candidate(self, counts: Mapping[int, int]) -> Candidate:
        composition = Composition.of_counts(counts, self._lattice)
        found = spread(self._sizes, self._span_ns, composition, self._capacity, self._prefill_time)
        return Candidate(
            composition,
            self._capacity.of(composition),
            found.demand_ns / self._span_ns,
            found.utilisation,
            _unsuitable(counts, self.wanted_workers),
        )


def _preference(candidate: Candidate) -> tuple[int, float]:
    if candidate.is_enough:
        return 0, 0.0
    return (2 if candidate.unsuitable else 1), -candidate.capacity


def _wanted_workers(
    sizes: Sequence[SizeClass], lattice: Lattice, model: PrefillTimeModel, gpu_time_weight: float
) -> dict[int, float]:
    gpu_time = dict.fromkeys(lattice.degrees, 0)
    for size in sizes:
        degree = _wanted_degree(size, lattice.degrees, model, gpu_time_weight)
        gpu_time[degree] += size.requests * degree * model.predict(degree, *size[1:])
    total = max(1, sum(gpu_time.values()))
    return {
        degree: sum(time for larger, time in gpu_time.items() if larger >= degree)
        / total
        * (lattice.gpus / degree)
        for degree in lattice.degrees[1:]
        if degree <= lattice.gpus
    }


def _wanted_degree(
    size: SizeClass, degrees: Sequence[int], model: PrefillTimeModel, gpu_time_weight: float
) -> int:
    _, uncached, cached = size
    smallest = degrees[0] * model.predict(degrees[0], uncached, cached)

    def cost(degree: int) -> float:
        service = model.predict(degree, uncached, cached)
        return service + gpu_time_weight * (degree * service - smallest)

    return min(degrees, key=lambda degree: (cost(degree), degree))


def _unsuitable(counts: Mapping[int, int], wanted: Mapping[int, float]) -> str:
    """Return which degree *counts* has too much of, or lacks, for workers *wanted*; empty if none."""
    for degree, worth in wanted.items():
        workers = sum(n for d, n in counts.items() if d >= degree)
        gpus = sum(d * n for d, n in counts.items() if d >= degree)
        # one whole worker of a larger degree may hold more GPUs than this degree's share alone
        most = max(ceil(w) * d for d, w in wanted.items() if d >= degree)
        if gpus > most:
            return f"{gpus} GPUs at CP{degree} or more, the lengths are worth {most}"
        if worth >= 0.5 and workers == 0:
            return f"no worker of CP{degree} or more, the lengths are worth {worth:.1f}"
    return ""


def compositions(gpus: int, degrees: Sequence[int]) -> Iterator[dict[int, int]]:
    """Yield the counts by degree that add up to *gpus*, most workers of the first degree first."""
    degree, *others = degrees
    if not others:
        if gpus % degree == 0:
            yield {degree: gpus // degree}
        return
    for count in range(gpus // degree, -1, -1):
        for rest in compositions(gpus - count * degree, others):
            yield {degree: count, **rest}
