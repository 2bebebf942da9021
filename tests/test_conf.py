"""The config files that come with Vertumnus: all of them compose, and say what they are for."""

import re
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from vertumnus.commandline.conf_folders import GROUPS
from vertumnus.commandline.hydra_configs import GRID, SWEEP, composed, hydra_configs, plain_tree
from vertumnus.commandline.listing import entries
from vertumnus.commandline.overrides import for_hydra, job_words
from vertumnus.config import RunConfig, to_run_config, validate
from vertumnus.config.reading import key_paths
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.prefill_time import PrefillTimeModel, attention_work
from vertumnus.live.config import MODEL_PRESETS, LiveConfig, ModelConfig
from vertumnus.report.compare.grid import LEVELS
from vertumnus.sim.config import SimConfig

CONF = Path(__file__).parents[1] / "conf"
FILES = sorted(file for file in CONF.glob("**/*.yaml") if "\nmeasured_at:" not in file.read_text("utf-8"))
"""What ships; in a checkout, `vertumnus profile` writes profiles of the developer's machine beside it."""
KNOWN = set(key_paths(RunConfig))

GIVEN = {"conversation": ["workload.path=trace.jsonl"]}
"""What an experiment needs that only the user knows."""


ONE_BACKEND = {
    "cache_ablation": "sim",
    "cache_ablation_live": "live",
    "deadlines": "sim",
    "prefill_times": "sim",
    "prefill_times_live": "live",
    "production_day": "sim",
    "reconfigure": "sim",
    "reconfigure_live": "live",
    "workloads": "sim",
    "routing_ablation": "sim",
    "routing_grid": "sim",
    "routing_live": "live",
}
"""Experiments whose pool is a preset's, which no machine here carries, or this machine's own."""


@lru_cache
def config_of(*words: str) -> RunConfig:
    """Return the config that the command line *words* composes."""
    with hydra_configs() as loader:
        (job,) = job_words(words, loader, multirun=False)
        return to_run_config(plain_tree(composed(for_hydra(job, loader))))


def tree_of(*words: str) -> dict[str, Any]:
    """Return the plain tree that *words* compose, without checking it."""
    with hydra_configs():
        return plain_tree(composed(words))


@pytest.mark.parametrize("backend", ["sim", "live"])
@pytest.mark.parametrize("experiment", [entry.name for entry in entries("experiment")])
def test_every_experiment_composes_on_every_backend(experiment: str, backend: str) -> None:
    """It names itself, breaks no rule, and the backend is the one asked for, before or after."""
    if ONE_BACKEND.get(experiment, backend) != backend:
        pytest.skip(f"{experiment} is a {ONE_BACKEND[experiment]} experiment")
    given = GIVEN.get(experiment, [])
    config = config_of(f"+experiment={experiment}", f"backend={backend}", *given)
    assert config.name == experiment
    assert isinstance(config.backend, SimConfig if backend == "sim" else LiveConfig)
    assert validate(config) == []
    assert config_of(f"backend={backend}", *given, f"+experiment={experiment}") == config


def test_the_backend_switches_the_scale_of_everything_else() -> None:
    """sim: 40 GPUs, a preset profile, no model, whole trace; live: this machine, a model, no profile."""
    sim = config_of("+experiment=tool_agent", "backend=sim")
    live = config_of("+experiment=tool_agent")
    assert (sim.cluster.gpus, live.cluster.gpus) == (40, 4)
    assert sim.cluster.initial_composition().counts() == {2: 4, 4: 8}
    assert live.cluster.initial_composition().counts() == {1: 2, 2: 1}
    assert sim.profile is not None and sim.model is None
    assert live.profile is None and live.model == MODEL_PRESETS["tiny"]
    assert (sim.workload.token_scale, sim.workload.requests) == (1.0, None)
    assert (live.workload.token_scale, live.workload.requests) == (1 / 16, 300)
    assert (sim.arrival.rate, live.arrival.load) == (45.0, 0.5)


SIMULATED = (
    ("policy=vertumnus", "cache=off"),
    ("cache=paper",),
    ("cache=vertumnus",),
    ("policy=paper", "slo=live"),
    ("policy=least_loaded", "cluster=pool40_cp4", "arrival=load"),
    ("policy=round_robin", "arrival=poisson"),
    ("policy=homo", "cluster=pool40_cp4", "scale=sixteenth"),
    ("policy=static", "policy.length_threshold=4096", "arrival=trace"),
    ("policy=cache_first", "correction=off"),
    ("policy=lmetric", "correction=on", "admission=off"),
    ("policy=dynamo_kv", "admission=on"),
    ("policy=sglang_cache_aware", "cluster=pool40_cp4"),
    ("policy=vllm_dp", "cluster=pool40_tp4", "profile=qwen3_30b_a3b-h20-tp4"),
    ("policy=vllm_dp", "cluster=pool40_tp4", "profile=deepseek_v4_flash-h20-tp4", "slo=deepseek_v4_flash"),
    ("controller=thresholds", "workload=phases", "arrival=trace"),
    ("controller=what_if", "workload=phases", "arrival=trace"),
    ("initial=given",),
    ("initial=head",),
    ("initial=other_seed", "initial.seed=7"),
    ("initial=other_trace", "initial.path=earlier.jsonl"),
    ("controller=advise", "workload=l_eval", "arrival=poisson"),
    ("controller=off", "workload=production"),
    ("controller=manual", "workload=production_day"),
    ("workload=mooncake_conversation", "arrival=trace"),
    ("workload=mooncake_toolagent", "arrival=load"),
    ("workload=azure_2023_conv", "arrival=rate"),
    ("workload=burst_gpt", "arrival=poisson"),
    ("workload=bailian_coder", "arrival=trace"),
    ("cluster=pool40_cp4_cp8", "profile=deepseek_v4_flash-h20", "slo=deepseek_v4_flash"),
)
LIVE = (
    ("model=nano", "arrival=trace"),
    ("cluster=two_ranks", "workload=swings", "controller=what_if_quick"),
    ("model=small", "arrival=rate", "slo=qwen3_30b_a3b"),
    ("model=med", "arrival=poisson", "scale=full"),
    ("cluster=four_ranks_cp2", "policy=homo"),
)


@pytest.mark.parametrize(
    "words",
    [*(("backend=sim", *words) for words in SIMULATED), *(("backend=live", *words) for words in LIVE)],
)
def test_every_group_stays_the_users_to_choose(words: tuple[str, ...]) -> None:
    """What is named on the command line wins over what the backend picks, and the whole is valid."""
    assert validate(config_of(*words)) == []


CELLS = tuple(entry.name for entry in entries("cell"))
TUNED = [
    (file.stem, level)
    for file in sorted((CONF / "cell" / "tuned").glob("*.yaml"))
    for level in yaml.safe_load(file.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("cell", "level"), TUNED)
def test_a_tuned_cell_has_a_pool_that_its_policies_share(cell: str, level: str) -> None:
    """Workers of both degrees, the same for ours, the published one and the threshold's."""
    words = ("+experiment=routing_grid", f"cell={cell}", f"grid.level={level}")
    policies = ("vertumnus", "paper_tuned", "static_tuned")
    configs = [config_of(*words, f"policy={policy}") for policy in policies]
    assert [validate(config) for config in configs] == [[], [], []]
    assert configs[0].cluster == configs[1].cluster == configs[2].cluster
    assert set(configs[0].cluster.initial_composition().counts()) == set(configs[0].cluster.degrees)
    assert configs[0].arrival.rate is not None


def test_every_cell_is_tuned_for_each_of_its_rates() -> None:
    """Whole curves can be run as they ship."""
    assert sorted(TUNED) == sorted(product(CELLS, LEVELS))


def test_rates_of_a_cell_rise() -> None:
    """From the lowest to the highest, the ends being those of the paper's axes."""
    ends = {}
    for cell in CELLS:
        content = yaml.safe_load((CONF / "cell" / f"{cell}.yaml").read_text(encoding="utf-8"))
        rates = list(content["grid"]["rates"].values())
        assert rates == sorted(rates) and len(rates) == 5
        ends[cell] = (rates[0], rates[-1])
    assert ends == {
        "deepseek_l_eval": (8, 16),
        "deepseek_tool_agent": (4, 14),
        "deepseek_production": (3, 8),
        "qwen_l_eval": (20, 40),
        "qwen_tool_agent": (30, 60),
        "qwen_production": (22, 37),
    }


def test_a_tuned_policy_outside_of_the_grid_is_told() -> None:
    """It has no values there."""
    with pytest.raises(
        ConfigError, match=r"policy.beta: .*'grid.level' not found; .* \+experiment=routing_grid"
    ):
        config_of("backend=sim", "policy=paper_tuned")


def test_every_option_is_chosen_in_some_test() -> None:
    """A new file in conf/ has to be composed above (or is what a backend or experiment picks itself)."""
    picked = {"default", "none", "full", "sixteenth", "rate", "load", "pool40", "four_ranks", "tiny", "live"}
    picked |= {
        "sim",
        "qwen3_30b_a3b",
        "qwen3_30b_a3b-h20",
        "tool_agent",
        "conversation",
        "reconfigure",
        "reconfigure_live",
        "brisk",
        "on",
        "cache_ablation",
        "cache_ablation_live",
        "deadlines",
        "ladder",
        "one_worker",
        "prefill_times",
        "prefill_times_live",
        "qwen3_30b_a3b-h20-undivided",
        "workloads",
        "pool40_cell",
        "paper_tuned",
        "routing_ablation",
        "routing_grid",
        "routing_live",
        "static_tuned",
        *CELLS,
    }
    named = {word.partition("=")[2] for words in (*SIMULATED, *LIVE) for word in words}
    shipped = {file.stem for file in FILES}
    assert {entry.name for group in GROUPS for entry in entries(group)} & shipped <= picked | named


@pytest.mark.parametrize("name", sorted(MODEL_PRESETS))
def test_a_model_file_is_its_preset(name: str) -> None:
    """The files and the presets of the engine say the same."""
    content = yaml.safe_load((CONF / "model" / f"{name}.yaml").read_text(encoding="utf-8"))
    assert msgspec.convert(content, ModelConfig) == MODEL_PRESETS[name]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CONF)))
def test_every_key_is_a_field(file: Path) -> None:
    """No file sets a key that nothing reads."""
    if file.parent.name == "tuned":
        return  # a table that other files refer to
    group = file.parent.relative_to(CONF).as_posix()
    content = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    header = re.match(r"# @package (\w+)", file.read_text(encoding="utf-8"))
    package = header[1] if header else group
    prefix = "" if package in ("_global_", ".") else f"{package}."
    keys = {key for key in _paths(content, prefix) if not key.endswith("defaults")}
    variants = {"policy.name", "backend.kind", "controller.name", "initial.name"}
    refers = {key for key in keys if key.startswith(GRID)}  # what other keys take their values from
    assert keys - KNOWN - variants - refers - {SWEEP} == set()


@pytest.mark.parametrize("backend", ["sim", "live"])
def test_every_field_of_a_part_is_in_its_file(backend: str) -> None:
    """``--cfg job`` shows every setting there is, none hides as a default of the code."""
    tree = tree_of(f"backend={backend}")
    shown = {re.sub(r"\.\d+", "", key) for key in _paths(tree, "")}
    parts = ("workload", "arrival", "cluster", "cache", "records")
    wanted = {path for path in KNOWN if path.partition(".")[0] in parts and "phases." not in path}
    assert wanted <= shown | {"cluster.composition"}


def _paths(tree: dict[str, Any], prefix: str) -> set[str]:
    """Return the dotted keys of *tree*; what is there for each degree is a value, not a key."""
    found = set()
    for key, value in tree.items():
        found.add(f"{prefix}{key}")
        if isinstance(value, dict) and key not in ("composition", "capacity", "per_degree"):
            found |= _paths(value, f"{prefix}{key}.")
    return found


def test_every_file_says_what_it_is_for() -> None:
    """``vertumnus ls`` shows one line for each option; an experiment also carries it as a key."""
    assert set(GROUPS) == {folder.name for folder in CONF.iterdir() if folder.is_dir()} - {"__pycache__"}
    for group in GROUPS:
        for entry in entries(group):
            assert re.fullmatch(r".{20,130}\.", entry.purpose), entry


def test_the_profiles_are_the_presets_times_their_scale() -> None:
    """E_2(1000, 0) of Qwen by hand: 1.05 * (0.036 + 0.006 + 1.6e-2 + (2.4e-2 + 2.88e-9 * 500,500) / 2)."""
    profile = config_of("backend=sim").profile
    assert profile is not None
    by_hand = 1.05 * (0.036 + 0.006 + 1000 * 1.6e-5 + (1000 * 2.4e-5 + 2.88e-9 * 500_500) / 2)
    assert attention_work(1000, 0) == 500_500
    assert profile.prefill_time().predict(2, 1000, 0) == pytest.approx(by_hand * 1e9, rel=1e-9)
    assert profile.handoff_base_s + profile.decode_step_s == pytest.approx(0.045)
    assert "not a measurement" in profile.provenance


@pytest.mark.parametrize("name", ["qwen3_30b_a3b-h20", "deepseek_v4_flash-h20"])
def test_a_tensor_parallel_profile_is_its_preset_in_the_other_form(name: str) -> None:
    """d + 1.6aR + bP + (cR + alpha*W)/4 with the preset's coefficients, and its costs outside prefill."""
    loose = ("backend=sim", "cluster=pool40_tp4")
    preset = config_of("backend=sim", *_pool_of(name), f"profile={name}").profile
    tensor = config_of(*loose, f"profile={name}-tp4").profile
    assert preset is not None and tensor is not None
    d, a, b = preset.prefill.startup_s, preset.prefill.per_uncached_s, preset.prefill.per_cached_s
    c, alpha = preset.prefill.divided_per_uncached_s, preset.prefill.divided_per_pair_s
    work = c * 3000 + alpha * attention_work(3000, 1024)
    by_hand = d + 1.6 * a * 3000 + b * 1024 + work / 4
    assert tensor.prefill_time().predict(4, 3000, 1024) == pytest.approx(by_hand * 1e9, rel=1e-9)
    assert (tensor.handoff(9), tensor.kv_bytes_per_token) == (preset.handoff(9), preset.kv_bytes_per_token)


def _pool_of(profile: str) -> tuple[str, ...]:
    return ("cluster=pool40_cp4_cp8",) if profile.startswith("deepseek") else ()


def test_fig_2_comes_out_of_the_qwen_profile() -> None:
    """Speed-up of degrees 4 and 8 over an undivided run at 64K tokens: 2.71 and 3.97 (Fig. 2: 2.71, 3.91)."""
    profile = config_of("backend=sim").profile
    assert profile is not None
    tokens = 65_536
    undivided = 1.05 * (0.032 + 6.5e-6 * tokens + 2.4e-5 * tokens + 2.88e-9 * attention_work(tokens, 0))
    model = PrefillTimeModel.of(profile.prefill, (4, 8))
    speed_ups = [undivided * 1e9 / model.predict(degree, tokens, 0) for degree in (4, 8)]
    assert speed_ups == pytest.approx([2.71, 3.97], abs=0.01)


def test_deepseek_misses_its_first_target_above_4110_tokens_at_degree_4() -> None:
    """An idle, uncached prefill with hand-off takes 0.5 s at about 4,110 tokens (7,200 at degree 8)."""
    profile = config_of("backend=sim", *SIMULATED[-1]).profile
    assert profile is not None
    for degree, tokens in ((4, 4110), (8, 7200)):
        ttft_ns = profile.prefill_time().predict(degree, tokens, 0) + profile.handoff(tokens)
        assert ttft_ns / 1e9 + profile.decode_step_s == pytest.approx(0.5, abs=0.005)
