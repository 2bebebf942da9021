"""kappa of each degree: what one worker carries within target, as one of a pool (sec. 6.1).

The paper profiles a worker alone. But behind a long prompt everybody waits, and a pool has other workers
to go to: alone, a worker carries less than half of what it carries among ten. So kappa is looked for in
pools of one degree, of as few and of as many workers as the budget can be divided into, and for a lone worker
as well; `Capacity` draws lines through these. `pool_breaks` holds this reading, and others, against pools of
two degrees.

All degrees have one target, since it is the pool's: `SHARE` of what the pool of one degree that attains
least attains without load. Long prompts may miss their targets at a small degree even on an idle worker, so
that 90 % of all would be out of reach however many workers there are.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from rich.console import Console

from vertumnus.config import RunConfig
from vertumnus.domain.profile import ModelProfile
from vertumnus.live.config import LiveConfig
from vertumnus.workers.config import ClusterConfig
from vertumnus_profiling.capacity import Capacity, SimulatedPool, executed_capacity, pool_of

SHARE = 0.9
"""Of the token-weighted attainment without load: what a pool must keep."""


class Kappa(NamedTuple):
    """What was found for one degree in a pool of one size."""

    degree: int
    workers: int
    pool: Capacity

    @property
    def value(self) -> float | None:
        """kappa: each worker's share of the pool's demand; None when the search found no break."""
        return None if self.pool.demand is None else self.pool.demand / self.workers


class Kappas(NamedTuple):
    """What was found for every degree."""

    target: float
    without_load: float
    """The least attainment without load, which the target is a share of."""
    found: tuple[Kappa, ...]

    def table(self) -> dict[int, dict[int, float]]:
        """Return kappa by degree, then by the workers of the pool; what was not found is left out."""
        table: dict[int, dict[int, float]] = {}
        for each in self.found:
            if each.value is not None:
                table.setdefault(each.degree, {})[each.workers] = each.value
        return table

    def provenance(self, config: RunConfig, how: str) -> str:
        """Return how it was found, in one line."""
        sizes = [str(size) for size in sorted({each.workers for each in self.found})]
        on = f"{config.workload.name}, Poisson arrivals, seed {config.seed}, policy paper"
        return (
            f"{how}, {on}, pools of {', '.join(sizes)} workers of one degree; "
            f"target {self.target:.1%} of the tokens, "
            f"{SHARE:.0%} of the least that a pool attains without load ({self.without_load:.1%})"
        )


Pools = Mapping[tuple[int, int], SimulatedPool]
"""The pools to load, by degree and number of workers."""


def pools_of(config: RunConfig) -> Pools:
    """Return the pools that kappa of the degrees of *config* is looked for in.

    Raises ConfigError as a run does when one of them could not serve the workload.
    """
    return {
        (degree, workers): SimulatedPool.of(config, {degree: workers})
        for degree in config.cluster.degrees
        for workers in pool_sizes(config.cluster)
    }


def pool_sizes(cluster: ClusterConfig) -> tuple[int, ...]:
    """Return one, and the fewest and the most workers that the budget can be divided into."""
    fewest, most = cluster.gpus // max(cluster.degrees), cluster.gpus // min(cluster.degrees)
    return tuple(sorted({1, max(1, fewest), max(1, most)}))


def simulated_kappas(
    pools: Pools, profile: ModelProfile, tell: Callable[[int], object] = lambda _pools: None
) -> Kappas:
    """Return kappa of every pool, in virtual time; *tell* hears how many are done."""
    # a lone worker's small cache makes it attain less; nobody deploys one, so it sets no target
    several = [pool for (_, workers), pool in pools.items() if workers > 1] or list(pools.values())
    without_load = min(pool.without_load(profile) for pool in several)
    found: list[Kappa] = []
    for (degree, workers), pool in pools.items():
        found.append(Kappa(degree, workers, pool.capacity(profile, SHARE * without_load)))
        tell(len(found))
    return Kappas(SHARE * without_load, without_load, tuple(found))


def executed_kappas(
    config: RunConfig, profile: ModelProfile, live: LiveConfig, simulated: Kappas, console: Console
) -> Kappas:
    """Return kappa of each degree in the pool that the ranks of *config* make, on this machine.

    The target is the simulated one, and each search begins at the simulated rate.
    """
    found = []
    for degree, workers in _executable(config.cluster):
        begin = _nearest(simulated.found, degree, workers)
        pool = executed_capacity(
            pool_of(config, {degree: workers}), profile, live, begin.pool.rate, simulated.target, console
        )
        found.append(Kappa(degree, workers, pool))
    return simulated._replace(found=tuple(found))


def _executable(cluster: ClusterConfig) -> list[tuple[int, int]]:
    return [(degree, cluster.gpus // degree) for degree in cluster.degrees if degree <= cluster.gpus]


def _nearest(found: Iterable[Kappa], degree: int, workers: int) -> Kappa:
    return min(
        (each for each in found if each.degree == degree), key=lambda each: abs(each.workers - workers)
    )
