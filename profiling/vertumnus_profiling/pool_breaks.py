"""Pools of two degrees at their break, and readings of kappa: ``python -m vertumnus_profiling.pool_breaks``.

The load on each composition is raised until the target of the preset's kappa breaks; the demand at the break
over the sum of kappa over the workers is 1 for a reading that is right. Readings: kappa by the number of
workers, as profiles hold it; kappa of a pool of the degree on all GPUs, whatever the number of workers;
kappa of a lone worker, as the paper profiles it. Takes some ten minutes of CPU time.
"""

from collections.abc import Iterator, Mapping, Sequence

from vertumnus.commandline.columns import in_columns
from vertumnus.config import RunConfig
from vertumnus.domain.cluster import Composition
from vertumnus.domain.profile import ModelProfile
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.run.simulated import rare_collections
from vertumnus_profiling.capacity import SimulatedPool
from vertumnus_profiling.kappa import Kappas, pools_of, simulated_kappas
from vertumnus_profiling.preset_capacity import PRESETS, preset

COUNTS: Mapping[str, Sequence[tuple[int, int]]] = {
    "qwen3_30b_a3b-h20": ((2, 1), (4, 2), (4, 8), (12, 4), (16, 2)),
    "deepseek_v4_flash-h20": ((2, 1), (2, 4), (4, 3), (8, 1), (8, 6)),
}
"""Workers of the smaller and of the larger degree: pools of 8 to 80 GPUs."""


def main() -> int:
    """Print the demand at the break over what each reading says, for every composition."""
    print("demand at the break / sum of kappa over the workers (1 is right); simulated")
    rows: list[tuple[str, ...]] = [
        ("preset", "pool", "break [s/s]", "kappa by workers", "on all GPUs", "lone worker")
    ]
    for name, words in PRESETS.items():
        config, profile = preset(name, words)
        with rare_collections():
            rows += [(name, *row) for row in _rows(config, profile, COUNTS[name])]
    print(in_columns(rows))
    return 0


def readings(config: RunConfig, kappas: Kappas) -> tuple[Capacity, ...]:
    """Return the capacity by workers, of pools on all GPUs, and of lone workers."""
    table, gpus = kappas.table(), config.cluster.gpus
    return (
        Capacity(table),
        Capacity({degree: row[gpus // degree] for degree, row in table.items()}),
        Capacity({degree: row[1] for degree, row in table.items()}),
    )


def _rows(
    config: RunConfig, profile: ModelProfile, pools: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, ...]]:
    kappas = simulated_kappas(pools_of(config), profile)
    said = readings(config, kappas)
    for few in pools:
        counts = dict(zip(config.cluster.degrees, few, strict=True))
        pool = SimulatedPool.of(config, counts)
        demand = pool.capacity(profile, kappas.target).demand
        composition = pool.config.cluster.initial_composition()
        yield str(composition), *_ratios(demand, composition, said)


def _ratios(demand: float | None, composition: Composition, said: Sequence[Capacity]) -> Iterator[str]:
    if demand is None:
        yield from ("no break", *("" for _ in said))
        return
    yield f"{demand:.2f}"
    yield from (f"{demand / capacity.of(composition):.2f}" for capacity in said)


if __name__ == "__main__":
    raise SystemExit(main())
