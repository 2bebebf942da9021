"""The packaged configs and the user's own, composed by Hydra; its errors become one message each.

Hydra only composes here: it starts no job, changes no folder and writes nothing.
"""

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from typing import Any

import yaml
from hydra import compose, initialize_config_module
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from vertumnus.commandline.conf_folders import user_folder
from vertumnus.config import did_you_mean
from vertumnus.domain.errors import ConfigError

SWEEP = "sweep"
"""The key under which an experiment declares a sweep; not part of a run's config."""
GRID = "grid"
"""The key under which cells keep what other keys refer to; not part of a run's config either."""

_SEED = "++seed="
"""How the seed of a job is given to Hydra."""
_NOISE = ("Config search path:", "provider=", "See https://", "full_key:", "object_type=", "reference_type=")


class UserFolderFirst(SearchPathPlugin):
    """Puts the user's ./conf before the packaged configs, where there is one."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Prepend the folder, so that a file of the user's replaces the packaged one of its name."""
        folder = user_folder()
        if folder is not None:
            search_path.prepend(provider="user", path=folder.resolve().as_uri())


@lru_cache(maxsize=4096)
def as_override(word: str) -> Override:
    """Return *word* of one value as Hydra reads it (0.9 ms); the jobs of a sweep share most of theirs.

    Raises HydraException.
    """
    return OverridesParser.create().parse_override(word)


@contextmanager
def hydra_configs() -> Iterator[ConfigLoader]:
    """Make the configs available to this module's other functions while the context lasts."""
    Plugins.instance().register(UserFolderFirst)
    with initialize_config_module("vertumnus.conf", version_base="1.3"):
        try:
            yield GlobalHydra.instance().config_loader()
        finally:
            _selected.cache_clear()  # files and search path may be others next time
            _but_for_seed.cache_clear()


@lru_cache(maxsize=1)
def all_groups(loader: ConfigLoader) -> tuple[str, ...]:
    """Return the config groups there are; looked for once a loader, since that takes Hydra 6 ms."""
    return tuple(loader.list_groups(""))


def group_options(loader: ConfigLoader, keys: Container[str]) -> dict[str, list[str]]:
    """Return the options of each config group that is among *keys* (each look takes Hydra 6 ms)."""
    names = [name for name in all_groups(loader) if name in keys]
    return {name: loader.get_group_options(name) for name in names}


def composed(words: Sequence[str]) -> DictConfig:
    """Return the config that *words* (Hydra overrides) select, without the sweep that it may declare.

    What refers to a cell's values has them then, and those are gone, too. Raises ConfigError.
    """
    return _without_sweep(with_sweep(words))


def composed_tree(words: Sequence[str]) -> dict[str, Any]:
    """Return the same as plain mappings and lists, which are not to be changed. Raises ConfigError.

    What differs in nothing but its seed is composed once, unless some value refers to the seed.
    """
    seeds = [word.removeprefix(_SEED) for word in words if word.startswith(_SEED)]
    others = tuple(word for word in words if not word.startswith(_SEED))
    shared = _but_for_seed(others) if len(seeds) == 1 and seeds[0].isdigit() else None
    return plain_tree(composed(words)) if shared is None else {**shared, "seed": int(seeds[0])}


@lru_cache(maxsize=64)
def _but_for_seed(words: tuple[str, ...]) -> dict[str, Any] | None:
    config = with_sweep(words)
    return None if "seed}" in OmegaConf.to_yaml(config) else plain_tree(_without_sweep(config))


def _without_sweep(config: DictConfig) -> DictConfig:
    OmegaConf.set_struct(config, False)
    config.pop(SWEEP, None)
    if GRID in config:
        _resolve(config)
        config.pop(GRID)
    return config


def with_sweep(words: Sequence[str]) -> DictConfig:
    """Return the config that *words* select, with the sweep of its experiment. Raises ConfigError.

    What is forced (``++key=value``) selects no file, so the jobs of a sweep share what the rest composes to.
    """
    try:
        selecting = (word for word in words if not word.startswith("++") and not _is_numbered(word))
        config = deepcopy(_selected(tuple(selecting)))
        for key, value, is_whole in _values(words):
            OmegaConf.update(config, key, value, merge=not is_whole, force_add=True)
        for word in filter(_is_numbered, words):
            _delete(config, word.removeprefix("~"))
        return config
    except MissingConfigException as error:
        raise ConfigError(_missing(error)) from error
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError) as error:
        raise ConfigError(plain(error)) from error


def _is_numbered(word: str) -> bool:
    """Return whether *word* takes away a numbered key, as of a degree: to Hydra it would be a string."""
    return word.startswith("~") and word.rpartition(".")[2].isdigit()


def _delete(config: DictConfig, path: str) -> None:
    where, _, name = path.rpartition(".")
    mapping = OmegaConf.select(config, where)
    if not isinstance(mapping, DictConfig) or int(name) not in mapping:
        there = ", ".join(map(str, mapping)) if isinstance(mapping, DictConfig) else "no keys"
        raise ConfigError(f"~{path}: no such key; {where} has {there}")
    with open_dict(mapping):
        del mapping[int(name)]


def plain_tree(config: DictConfig) -> dict[str, Any]:
    """Return *config* as plain mappings and lists, every interpolation resolved. Raises ConfigError."""
    try:
        tree = OmegaConf.to_container(config, resolve=True)
    except OmegaConfBaseException as error:
        raise ConfigError(plain(error)) from error
    assert isinstance(tree, dict)
    return {str(key): value for key, value in tree.items()}


def _resolve(config: DictConfig) -> None:
    try:
        OmegaConf.resolve(config)
    except OmegaConfBaseException as error:
        raise ConfigError(plain(error)) from error


def plain(error: Exception) -> str:
    """Return what *error* says in one line, its key first, without Hydra's internals."""
    lines = [line.strip() for line in str(error).splitlines()]
    text = "; ".join(line for line in lines if line and not line.startswith(_NOISE))
    if f"Interpolation key '{GRID}.tuned" in text:
        text += "; not tuned yet: python -m vertumnus_profiling.tune.cells CELL --level NAME"
    elif f"Interpolation key '{GRID}." in text:
        text += "; that is a value of a cell: +experiment=routing_grid"
    key = getattr(error, "full_key", None)  # OmegaConf's errors carry it
    return f"{key}: {text}" if key else text


@lru_cache(maxsize=64)
def _selected(words: tuple[str, ...]) -> DictConfig:
    return compose("config", overrides=list(words))


def _values(words: Sequence[str]) -> Iterator[tuple[str, Any, bool]]:
    """Yield key and value of the overrides that are forced or give a mapping, and whether it is that.

    A mapping replaces the one in the file, where Hydra merges: ``cluster.composition={2: 20}`` names
    the whole composition; merged, it would keep the old degrees beside the new one.
    """
    for override in map(as_override, words):
        value = None if override.is_delete() else override.value()
        if override.is_force_add() or isinstance(value, dict):
            yield override.key_or_group, value, isinstance(value, dict)


def _missing(error: MissingConfigException) -> str:
    sought = str(error.missing_cfg_file)
    where = str(error).partition(":")[0].strip()
    group, _, option = sought.rpartition("/")
    return f"{where}: no config {sought}{did_you_mean(option, error.options or ())} (group {group or 'root'})"
