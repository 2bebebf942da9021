"""kappa of the simulator's presets: ``python -m vertumnus_profiling.preset_capacity``.

A preset is chosen, not measured, and so is its capacity: the highest demand per worker, in a pool of one
degree on all GPUs, at which the attainment is still 90 % of what it is without load. A lone worker
(`capacity.lone_worker`) would carry less than half of that: behind a long prompt everybody waits, where a
pool has other workers. Without load the attainment is below 100 %, since long prompts miss their targets
even alone; 90 % of all would be out of reach at degree 4 of the DeepSeek preset.
"""

from collections.abc import Sequence

from msgspec import structs

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.errors import ConfigError
from vertumnus.run.stream import load_stream
from vertumnus_profiling import capacity

PRESETS = {
    "qwen3_30b_a3b-h20": ("slo=qwen3_30b_a3b", "cluster=pool40"),
    "deepseek_v4_flash-h20": ("slo=deepseek_v4_flash", "cluster=pool40_cp4_cp8"),
}
REQUESTS = 8_000
"""Of the tool-agent workload, Poisson arrivals."""
NO_LOAD = 0.02
"""Share of a busy pool at which nobody waits."""


def main() -> int:
    """Print kappa of each preset's degrees."""
    for name, words in PRESETS.items():
        config = _config(name, words)
        for degree in config.cluster.degrees:
            kappa, ceiling = pool_capacity(config, degree)
            print(f"{name} CP{degree}: kappa {kappa:.2f} s of work/s; attainment without load {ceiling:.1%}")
    return 0


def pool_capacity(config: RunConfig, degree: int) -> tuple[float, float]:
    """Return kappa of a worker of *degree* in a pool of such workers, and the attainment without load.

    Raises ConfigError when the search finds no load that breaks the target.
    """
    if config.profile is None:
        raise ConfigError("profile: found null, a preset's capacity needs the preset")
    workers = config.cluster.gpus // degree
    lone = capacity.lone_worker(config, degree)
    cluster = structs.replace(lone.cluster, gpus=workers * degree, composition={degree: workers})
    pool = structs.replace(lone, cluster=cluster)
    stream = load_stream(pool)
    busy = capacity.busy_rate_of(pool, config.profile, stream)

    def trial(rate: float) -> capacity.Trial:
        records = capacity.simulated_records(pool, config.profile, stream, rate)  # type: ignore[arg-type]
        return capacity.judge(records, capacity.measurement_of(pool))

    ceiling = trial(NO_LOAD * busy).attainment or 0.0
    found = capacity.find_capacity(
        trial, busy, busy / 4, capacity.SIMULATED_STEP, capacity.SIMULATED_TOLERANCE, 0.9 * ceiling
    )
    if found.kappa is None:
        raise ConfigError(
            f"degree {degree}: no load between the first and {found.rate:.1f} req/s breaks the target"
        )
    return found.kappa / workers, ceiling


def _config(name: str, words: Sequence[str]) -> RunConfig:
    asked = ("+experiment=tool_agent", "backend=sim", f"profile={name}", f"workload.requests={REQUESTS}")
    with hydra_configs():
        return to_run_config(plain_tree(composed((*asked, *words))))


if __name__ == "__main__":
    raise SystemExit(main())
