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
from math import ceil

from msgspec import Struct

from vertumnus.domain.cluster import Composition, Lattice
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.sizes import SizeClass
from vertumnus.policy.reconfig.spread import spread


class InitialChoice(Struct, frozen=True):
    """The composition chosen, and what it was chosen for."""

    composition: Composition
    utilisation: float
    """Of the fullest degree under the slice; above 1 no suitable composition has enough capacity."""
    wanted_workers: dict[int, float]
    """By degree above the smallest: workers of that degree or more that the length distribution is worth."""


def initial_composition(
    sizes: Sequence[SizeClass],
    span_ns: Nanoseconds,
    lattice: Lattice,
    capacity: Capacity,
    prefill_time: PrefillTimeModel,
    gpu_time_weight: float,
) -> InitialChoice:
    """Choose for requests of *sizes* that arrived within *span_ns*; *gpu_time_weight* is lambda.

    Raises ConfigError when the slice is empty, no composition adds up to G, or kappa is missing.
    """
    if not sizes or span_ns <= 0:
        raise ConfigError("history: the slice holds no request, the initial composition needs at least one")
    capacity.require(lattice.degrees)
    wanted = _wanted_workers(sizes, lattice, prefill_time, gpu_time_weight)
    fallback: InitialChoice | None = None
    for counts in _compositions(lattice.gpus, lattice.degrees[::-1]):
        if not _is_suitable(counts, wanted):
            continue
        composition = Composition.of_counts(counts, lattice)
        utilisation = spread(sizes, span_ns, composition, capacity, prefill_time).utilisation
        choice = InitialChoice(composition, utilisation, wanted)
        if utilisation <= 1.0:
            return choice
        if fallback is None or capacity.of(composition) > capacity.of(fallback.composition):
            fallback = choice
    if fallback is None:
        raise ConfigError(
            f"cluster.gpus: found {lattice.gpus}, no workers of degrees {list(lattice.degrees)} "
            "(cluster.degrees) add up to it"
        )
    return fallback


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


def _is_suitable(counts: Mapping[int, int], wanted: Mapping[int, float]) -> bool:
    for degree, worth in wanted.items():
        workers = sum(n for d, n in counts.items() if d >= degree)
        gpus = sum(d * n for d, n in counts.items() if d >= degree)
        # one whole worker of a larger degree may hold more GPUs than this degree's share alone
        most = max(ceil(w) * d for d, w in wanted.items() if d >= degree)
        if gpus > most or (worth >= 0.5 and workers == 0):
            return False
    return True


def _compositions(gpus: int, degrees: Sequence[int]) -> Iterator[dict[int, int]]:
    """Yield the counts by degree that add up to *gpus*, most workers of the first degree first."""
    degree, *others = degrees
    if not others:
        if gpus % degree == 0:
            yield {degree: gpus // degree}
        return
    for count in range(gpus // degree, -1, -1):
        for rest in _compositions(gpus - count * degree, others):
            yield {degree: count, **rest}
