"""No number of a config makes a run overflow or never end: it is served, or refused in one line by key."""

import copy
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin

import pytest
from msgspec import Struct, structs

from tests.support.short_runs import run_encoded
from tests.test_conf import tree_of
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import largest
from vertumnus.run.stream import Stream
from vertumnus.trace.config import ArrivalConfig, WorkloadConfig
from vertumnus.trace.load import load_rows

ODD = (1e-300, 1e300, 10**18, -1, 0, math.nan, math.inf)
"""What every number is set to, beside the largest that is read at all."""

SHORT = (
    "workload.phases=[{duration_s: 2, rate: 4}, {duration_s: 2, rate: 2, long_share: 0.5, long_tokens: 4096}]"
)
SIM = ("backend=sim", "workload.requests=6")
POISSON = ("+experiment=tool_agent", *SIM, "arrival=poisson")
BASES = {
    "vertumnus": ("+experiment=tool_agent", *SIM, "cache=vertumnus", "admission=on", "correction=on",
                  "arrival=poisson", "++profile.schema_version=1", "++profile.cores=null",
                  "++profile.block_tokens=null"),
    "paper": ("+experiment=tool_agent", *SIM, "policy=paper", "cache=paper", "arrival=poisson"),
    "thresholds": ("+experiment=reconfigure", *SIM, SHORT, "controller=thresholds", "controller.window_s=1"),
    "what_if": ("+experiment=reconfigure", *SIM, SHORT, "controller=what_if", "controller.horizon_s=0"),
    "advise": ("+experiment=reconfigure", *SIM, SHORT, "controller=advise", "controller.window_s=1"),
    "script": (
        "+experiment=tool_agent",
        *SIM,
        "controller.script=[{at_s: 0.1, action: split, workers: [0x4]}]",
        "arrival=load",
        "arrival.process=poisson",
        "policy=dynamo_kv",
    ),
    "static": (*POISSON, "policy=static", "policy.length_threshold=4096"),
    "sglang": (*POISSON, "policy=sglang_cache_aware", "cluster=pool40_cp4"),
    "slices": (*POISSON, "initial=head", "initial.share=0.5", "initial.in_sample=true"),
    "times": ("+experiment=tool_agent", *SIM, "arrival=trace", "arrival.time_scale=2", "initial=other_seed",
              "initial.seed=7", "arrival.jitter=uniform_tick", "workload.requests=30"),
}  # fmt: skip
ONLY_FOR = {
    "vertumnus": ("",),
    "paper": ("policy", "cache", "arrival"),
    "thresholds": ("controller", "profile.capacity", "workload.phases"),
    "what_if": ("controller",),
    "advise": ("controller",),
    "script": ("controller", "policy", "arrival"),
    "static": ("policy",),
    "sglang": ("policy",),
    "slices": ("initial",),
    "times": ("initial", "arrival"),
}
"""The groups whose keys a base sets; the first one those of all groups."""
NOT_HERE = (
    "workload.requests",
    "model.",
    "backend.calibration.",
    "backend.start_timeout_s",
    "backend.step_timeout_s",
    "profile.cpu.",
    "profile.published.",
    "profile.per_degree.",
    "profile.errors.",
    "initial.start_s",
    "initial.duration_s",
)
"""How many are served, what nothing reads in a simulated run, or only with a file, or as others are read."""


def numbers(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each number below *node*, and of each null, which may stand for one."""
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from numbers(value, (*path, key))
    elif node is None or (isinstance(node, int | float) and not isinstance(node, bool)):
        yield path


def with_number(tree: dict[str, Any], path: tuple[Any, ...], value: float) -> dict[str, Any]:
    """Return *tree* with *value* at *path*."""
    changed = copy.deepcopy(tree)
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def spelled(path: tuple[Any, ...]) -> str:
    """Return *path* as messages spell it."""
    return "".join(f"[{key}]" if isinstance(key, int) and place and path[place - 1] in LISTS else f".{key}"
                   for place, key in enumerate(path))[1:]  # fmt: skip


GROUPS = RunConfig.__struct_fields__
LISTS = ("buckets", "phases", "script", "degrees")


@lru_cache
def base(name: str) -> dict[str, Any]:
    """Return the plain tree of a base."""
    return tree_of(*BASES[name])


@lru_cache
def stream_of(workload: WorkloadConfig, seed: int) -> Stream:
    """Return the requests of *workload*, made once."""
    return load_rows(workload, ArrivalConfig(), seed)


CASES = [
    (name, path)
    for name in BASES
    for path in numbers(base(name))
    if spelled(path).startswith(ONLY_FOR[name]) and not spelled(path).startswith(NOT_HERE)
]


@pytest.mark.parametrize(("name", "path"), CASES, ids=[f"{name}-{spelled(path)}" for name, path in CASES])
def test_a_number_is_served_or_refused(name: str, path: tuple[Any, ...]) -> None:
    """In one line for each problem, which begins with the key or the group that it is of."""
    key = spelled(path)
    for value in (*ODD, largest(key), int(largest(key))):
        try:
            config = to_run_config(with_number(base(name), path, value))
            ended = run_encoded(config, stream_of(config.workload, config.seed))
        except ConfigError as error:
            assert all("\n" not in problem for problem in error.problems), (value, error)
            assert all(re.split(r"[.:\[]", problem)[0] in GROUPS for problem in error.problems), (
                value,
                error,
            )
        else:
            assert ended >= 1, value


def keys_of_numbers(kind: type[Struct], path: str = "") -> Iterator[str]:
    """Yield the path of every key below *kind* that can hold a number, lists and numbered keys left out."""
    for field in structs.fields(kind):
        options = list(options_of(field.type))
        if {int, float} & {*options}:
            yield f"{path}{field.name}"
        for option in options:
            if isinstance(option, type) and issubclass(option, Struct):
                yield from keys_of_numbers(option, f"{path}{field.name}.")


def options_of(kind: Any) -> Iterator[Any]:
    """Yield what a value of *kind* is made of in the end."""
    arguments = get_args(kind)
    if get_origin(kind) is Literal or not arguments:
        yield kind
    for argument in arguments[1:] if get_origin(kind) is dict else arguments:
        yield from options_of(argument)


def test_every_number_of_a_config_is_tried() -> None:
    """Each key that can hold one is set by some base, or nothing reads it in a simulated run."""
    tried = {".".join(str(key) for key in path if not isinstance(key, int)) for _, path in CASES}
    assert {key for key in keys_of_numbers(RunConfig) if not key.startswith(NOT_HERE)} <= tried
