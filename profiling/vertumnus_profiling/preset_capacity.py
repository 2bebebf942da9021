"""kappa of the simulator's presets: ``python -m vertumnus_profiling.preset_capacity``.

A preset is chosen, not measured, and so is its capacity; the reading is that of every profile (`kappa`).
"""

from collections.abc import Sequence

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.profile import ModelProfile
from vertumnus.run.simulated import rare_collections
from vertumnus_profiling.kappa import pools_of, simulated_kappas

PRESETS = {
    "qwen3_30b_a3b-h20": ("slo=qwen3_30b_a3b", "cluster=pool40"),
    "deepseek_v4_flash-h20": ("slo=deepseek_v4_flash", "cluster=pool40_cp4_cp8"),
}


def main() -> int:
    """Print the keys of each preset's capacity, as they stand in its file."""
    for name, words in PRESETS.items():
        config, profile = preset(name, words)
        with rare_collections():
            found = simulated_kappas(pools_of(config), profile)
        table = {degree: {n: round(k, 3) for n, k in row.items()} for degree, row in found.table().items()}
        print(f"{name}\ncapacity: {table}")
        print(f"capacity_provenance: {found.provenance(config, 'simulated')}", flush=True)
    return 0


def preset(name: str, words: Sequence[str]) -> tuple[RunConfig, ModelProfile]:
    """Return the config of the pool that preset *name* is for, and its profile."""
    with hydra_configs():
        tree = plain_tree(composed(("+experiment=tool_agent", "backend=sim", f"profile={name}", *words)))
    config = to_run_config(tree)
    assert config.profile is not None, "it was named"
    return config, config.profile


if __name__ == "__main__":
    raise SystemExit(main())
