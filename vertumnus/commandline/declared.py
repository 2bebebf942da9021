"""The sweep that an experiment declares under its key ``sweep``, so that ``-m`` needs no typing.

    sweep:
      - {controller: [brisk, thresholds], seed: [0, 1, 2]}     # axes: every combination
      - controller: "off"                                      # no list: the same in all jobs of the block
        cluster.composition: [{4: 10}, {4: 8, 8: 1}]
        seed: [0, 1, 2]

Each block is multiplied out by itself. A key that is typed takes the place of the axis of that name, and
gives way in blocks that have one value for it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from hydra.core.config_loader import ConfigLoader
from omegaconf import OmegaConf

from vertumnus.commandline.hydra_configs import SWEEP, with_sweep
from vertumnus.commandline.overrides import for_hydra, require_options
from vertumnus.domain.errors import ConfigError


def with_declared(typed: Sequence[tuple[str, ...]], loader: ConfigLoader) -> list[tuple[str, ...]]:
    """Return the jobs of the sweep that the experiment of each of *typed* declares, or *typed* without one.

    Raises ConfigError when a sweep cannot be read or names no option of a group.
    """
    jobs: list[tuple[str, ...]] = []
    declared: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for words in typed:
        selecting = tuple(word for word in words if word.lstrip("+").startswith(("experiment=", "hydra.")))
        if selecting not in declared:
            sweep = with_sweep(for_hydra(selecting, loader)).get(SWEEP)
            declared[selecting] = declared_jobs(
                OmegaConf.to_container(sweep) if OmegaConf.is_config(sweep) else sweep, words
            )
            require_options({word for job in declared[selecting] for word in job}, loader)
        jobs += [_joined(words, added) for added in declared[selecting]]
    # what is fixed in a block makes equal jobs of what was typed; jobs typed twice are not ours to mend
    distinct: dict[tuple[str, ...], tuple[str, ...]] = {}
    for job in jobs:
        distinct.setdefault(tuple(sorted(job)), job)
    return list(distinct.values()) if any(any(added) for added in declared.values()) else list(typed)


def _joined(typed: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    keys = {_key(word) for word in added}
    return (*(word for word in typed if _key(word) not in keys), *added)


def _key(word: str) -> str:
    return word.lstrip("+~").partition("=")[0]


def declared_jobs(declared: object, typed: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the overrides that each job of the *declared* sweep adds to those *typed*.

    Without a sweep, None, that is one job that adds none. Raises ConfigError when it cannot be read.
    """
    if declared is None:
        return [()]
    blocks: list[Any] = declared if isinstance(declared, list) else [declared]
    problems = [problem for place, block in enumerate(blocks) for problem in _problems(block, place)]
    if problems or not blocks:
        raise ConfigError(
            *problems or [f"{SWEEP}: found no block, must be mappings from a key to its values"]
        )
    keys = {word.lstrip("+~").partition("=")[0] for word in typed}
    return [job for block in blocks for job in _multiplied(block, keys)]


def _problems(block: object, place: int) -> Iterator[str]:
    if not isinstance(block, Mapping) or not block:
        yield f"{SWEEP}[{place}]: found {block!r}, must be a mapping from a key to its values"
        return
    for key, values in block.items():
        if values == []:
            yield f"{SWEEP}[{place}].{key}: found an empty list, must have a value"


def _multiplied(block: Mapping[Any, Any], typed: set[str]) -> Iterator[tuple[str, ...]]:
    axes = {
        str(key): values if isinstance(values, list) else [values]
        for key, values in block.items()
        if not (isinstance(values, list) and key in typed)
    }
    for values in product(*axes.values()):
        yield tuple(f"{key}={_as_typed(value)}" for key, value in zip(axes, values, strict=True))


def _as_typed(value: Any) -> str:
    """Return *value* as it would be typed on the command line."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_as_typed(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_as_typed, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and not re.fullmatch(r"[\w./-]+", value):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)
