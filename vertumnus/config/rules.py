"""What must hold between the parts of a run's config, and the way from a plain tree to it.

A rule names the parts that it needs and yields its problems; it is asked whenever those parts could
be read, so that one look at the messages shows everything that is to be mended.
"""

from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from vertumnus.config.reading import UNREADABLE, TreeReader
from vertumnus.config.run_config import BackendConfig, RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.wording import counted
from vertumnus.live.config import LiveConfig, ModelConfig
from vertumnus.policy.config import CacheConfig, HomoPolicy, PolicyConfig, StaticPolicy
from vertumnus.policy.reconfig.config import (
    AdviseController,
    ControllerConfig,
    Thresholds,
    script_of,
)
from vertumnus.policy.reconfig.mode import Mode, configured_mode
from vertumnus.policy.reconfig.moves import impossible
from vertumnus.records.config import RecordsConfig
from vertumnus.sim.config import SimConfig
from vertumnus.trace.config import WorkloadConfig
from vertumnus.trace.history import GivenComposition, InitialConfig, history_problems
from vertumnus.workers.config import ClusterConfig

Rule = Callable[..., Iterator[str]]


def to_run_config(tree: Mapping[str, Any]) -> RunConfig:
    """Return the config that *tree* describes. Raises ConfigError with every problem found."""
    reader = TreeReader(RunConfig)
    parts = reader.fields(RunConfig, tree, "")
    readable = {name: part for name, part in parts.items() if part is not UNREADABLE}
    problems = [*reader.problems, *_broken_rules(readable)]
    if problems:
        raise ConfigError(*problems)
    return RunConfig(**readable)


def validate(config: RunConfig) -> list[str]:
    """Return every rule between its parts that *config* breaks, one line each."""
    return _broken_rules({name: getattr(config, name) for name in RunConfig.__struct_fields__})


def _broken_rules(parts: Mapping[str, Any]) -> list[str]:
    problems: list[str] = []
    for rule in RULES:
        needed = signature(rule).parameters
        if needed.keys() <= parts.keys():
            problems += rule(**{name: parts[name] for name in needed})
    return problems


def _name(name: str) -> Iterator[str]:
    if not name:
        yield "name: found '', must not be empty"


def _runs_dir(runs_dir: str) -> Iterator[str]:
    folder = Path(runs_dir)
    files = [str(part) for part in (folder, *folder.parents) if part.is_file()]
    if not runs_dir.strip():
        yield f"runs_dir: found {runs_dir!r}, must name a folder"
    elif files:
        yield f"runs_dir: found {runs_dir}, but {files[0]} is a file, must be a folder"


def _seed(seed: int) -> Iterator[str]:
    if seed < 0:
        yield f"seed: found {seed}, must be at least 0"


def _composition(cluster: ClusterConfig) -> Iterator[str]:
    try:
        cluster.initial_composition()
    except ConfigError as error:
        yield from error.problems


def _backend_parts(
    backend: BackendConfig, profile: ModelProfile | None, model: ModelConfig | None
) -> Iterator[str]:
    match backend:
        case SimConfig():
            if profile is None:
                yield "profile: found null, backend sim needs one (profile=qwen3_30b_a3b-h20, for example)"
            if model is not None:
                yield f"model: found {model.name}, backend sim computes none; use model=none"
        case LiveConfig():
            if model is None:
                yield "model: found null, backend live needs one (model=tiny, for example)"
            if profile is None and backend.calibration.enabled is False:
                yield "profile: found null, must be given when backend.calibration.enabled is false"
            if profile is not None and backend.calibration.enabled:
                yield (
                    f"profile: found {profile.model}, but backend.calibration.enabled=true would measure "
                    "over it; use profile=none, or leave backend.calibration.enabled null"
                )


def _memory_at_once(backend: BackendConfig, cache: CacheConfig) -> Iterator[str]:
    if isinstance(backend, LiveConfig) and backend.check_memory and cache.report_delay_s > 0:
        yield (
            f"cache.report_delay_s: found {cache.report_delay_s:g}, must be 0 with "
            "backend.check_memory=true: an index that is late does not agree with the ranks' memory"
        )


def _profile_of_this_kind(
    profile: ModelProfile | None, model: ModelConfig | None, workload: WorkloadConfig
) -> Iterator[str]:
    """A profile predicts what it was measured on; the hardware is looked at when ranks are planned."""
    if profile is None:
        return
    if model is not None:
        yield from _other_model(profile, model)
    block_tokens = workload.scaled_block_tokens
    if profile.block_tokens not in (None, block_tokens):
        yield (
            f"profile.block_tokens: found {profile.block_tokens}, but this workload has blocks of "
            f"{block_tokens} (workload.block_tokens * workload.token_scale); measure with the same ones"
        )


def _other_model(profile: ModelProfile, model: ModelConfig) -> Iterator[str]:
    if profile.model != model.name:
        yield (
            f"profile.model: found {profile.model}, but the ranks compute {model.name} (model.name); "
            f"measure it with: vertumnus profile model={model.name}"
        )
    elif profile.dtype not in (None, model.dtype):
        yield f"profile.dtype: found {profile.dtype}, but model.dtype is {model.dtype}; measure it again"
    elif profile.kv_bytes_per_token != model.kv_bytes_per_token:
        yield (
            f"profile.kv_bytes_per_token: found {profile.kv_bytes_per_token}, but this {model.name} has "
            f"{model.kv_bytes_per_token}: its layers or heads are others; measure it again"
        )


def _profiled_degrees(cluster: ClusterConfig, profile: ModelProfile | None) -> Iterator[str]:
    if profile is not None:
        for degree in sorted(set(cluster.degrees) - set(profile.degrees)):
            yield (
                f"cluster.degrees: found {degree}, profile {profile.model} on {profile.hardware} "
                f"covers {list(profile.degrees)} (profile.degrees)"
            )


def _degrees_for_policy(cluster: ClusterConfig, policy: PolicyConfig) -> Iterator[str]:
    present = {degree: count for degree, count in cluster.composition.items() if count > 0}
    if isinstance(policy, HomoPolicy) and len(present) > 1:
        yield f"cluster.composition: found {present}, policy homo needs all workers at one degree"
    if isinstance(policy, StaticPolicy) and len(present) == 1:
        yield (
            f"policy.length_threshold: found {policy.length_threshold}, has no effect on workers of one "
            f"degree ({present}); policy static needs a composition of two or more"
        )


def _capacity_for_controller(
    cluster: ClusterConfig, profile: ModelProfile | None, controller: ControllerConfig
) -> Iterator[str]:
    if not isinstance(controller, Thresholds):
        return
    name = "advise" if isinstance(controller, AdviseController) else "thresholds"
    if profile is None:
        yield (
            f"controller.name: found {name}, which needs the capacity of each degree; profile=none measures "
            "none. Make a profile with: vertumnus profile, or use controller=manual"
        )
        return
    for degree in sorted(set(cluster.degrees) - set(profile.capacity or {})):
        yield (
            f"profile.capacity.{degree}: missing, controller {name} needs kappa of every degree in "
            f"cluster.degrees; found {sorted(profile.capacity or {})}"
        )


def _history(
    initial: InitialConfig, workload: WorkloadConfig, records: RecordsConfig, seed: int
) -> Iterator[str]:
    if not isinstance(initial, GivenComposition):
        yield from history_problems(initial, workload, seed, records.warmup_share)


def _capacity_for_history(
    initial: InitialConfig, cluster: ClusterConfig, profile: ModelProfile | None
) -> Iterator[str]:
    if isinstance(initial, GivenComposition):
        return
    if profile is None:
        yield (
            "initial: a slice is held against the capacity of each degree, and profile=none has none; "
            "make a profile with: vertumnus profile, or use initial=given"
        )
        return
    for degree in sorted(set(cluster.degrees) - set(profile.capacity or {})):
        yield (
            f"profile.capacity.{degree}: missing, initial needs kappa of every degree in cluster.degrees; "
            f"found {sorted(profile.capacity or {})}"
        )


def _script(controller: ControllerConfig, cluster: ClusterConfig) -> Iterator[str]:
    lattice, mode, script = cluster.lattice, configured_mode(controller), script_of(controller)
    groups = set(lattice.groups()) if script else set()
    for place, wish in enumerate(script):
        if wish.action in ("auto", "manual") and mode != Mode.AUTO:
            yield (
                f"controller.script[{place}].action: found {wish.action}, but controller={mode} has no "
                "controller that moves workers"
            )
        strangers = [worker for worker in wish.groups() if worker not in groups]
        for worker in strangers:
            yield (
                f"controller.script[{place}].workers: found {worker}, which is no group of "
                f"{counted(cluster.gpus, 'rank')} at degrees {list(cluster.degrees)} (first rank x degree, "
                f"aligned)"
            )
        if wish.action in ("split", "merge") and not strangers:
            for problem in impossible(lattice, wish.action, wish.groups()):
                yield f"controller.script[{place}].workers: {problem}"


RULES: tuple[Rule, ...] = (
    _name,
    _runs_dir,
    _seed,
    _composition,
    _backend_parts,
    _memory_at_once,
    _profile_of_this_kind,
    _profiled_degrees,
    _degrees_for_policy,
    _capacity_for_controller,
    _history,
    _capacity_for_history,
    _script,
)
