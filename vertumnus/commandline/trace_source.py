"""What the words of a trace verb name: files or a generator, and how they are read."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from vertumnus.config import did_you_mean
from vertumnus.config.reading import UNREADABLE, TreeReader
from vertumnus.domain.errors import ConfigError
from vertumnus.trace.config import WorkloadConfig
from vertumnus.trace.formats.parquet import ParquetRows
from vertumnus.trace.formats.sniff import sniff

KEYS = frozenset(WorkloadConfig.__struct_fields__) - {"name", "purpose", "path", "mix", "url", "sha256"}
"""The keys of a workload that these verbs take, without ``workload.`` before them."""


READING = (
    f"then how to read, as key=value: seed, {', '.join(sorted(KEYS))}; "
    "bad_rows=skip leaves out and counts the rows that would be errors"
)


class Source(NamedTuple):
    """A trace as the words name it."""

    workload: WorkloadConfig
    seed: int
    """For a generator."""


def source_of(words: Sequence[str], defaults: Mapping[str, Any] | None = None) -> Source:
    """Return what *words* name: files first, then ``key=value``; *defaults* holds for keys not given.

    A file's format is read off its first line unless it is given. Raises ConfigError.
    """
    files, keys = split(words)
    tree = {**(defaults or {}), **{word.partition("=")[0]: _value(word) for word in keys}}
    seed = tree.pop("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ConfigError(f"seed: found {seed!r}, must be a whole number, at least 0")
    if files:
        tree |= {"path": files[0], "mix": files[1:], **_found_in(Path(files[0]), tree)}
    elif "generator" not in tree:
        raise ConfigError("no trace: name a file, or a generator (generator=tool_agent)")
    return Source(_workload({"name": Path(files[0]).name if files else "generated", **tree}), seed)


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the files among *words*, then the ``key=value`` ones."""
    is_key = [word.partition("=")[0] in KEYS | {"seed"} and "=" in word for word in words]
    files = [word for word, key in zip(words, is_key, strict=True) if not key]
    if "" in files:
        raise ConfigError("found '', must be a file")
    for file in files:
        key, equals, _ = file.partition("=")
        if equals and not Path(file).exists():
            raise ConfigError(f"{file}: no such file, and {key} is no key{did_you_mean(key, KEYS)}")
    return files, [word for word, key in zip(words, is_key, strict=True) if key]


def _value(word: str) -> object:
    key, _, text = word.partition("=")
    try:
        return float(text) if _is_float(text) else yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConfigError(f"{key}: cannot read {text!r}") from None


def _is_float(text: str) -> bool:
    """Return whether *text* is a number that YAML takes for a word, as it does 1e9."""
    try:
        float(text)
    except ValueError:
        return False
    return not isinstance(yaml.safe_load(text), int | float)


def _found_in(path: Path, tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the file at *path* says of itself and *tree* does not."""
    format_name = tree.get("format") or sniff(path)
    found: dict[str, Any] = {"format": format_name}
    if format_name == "parquet" and "block_tokens" not in tree:
        found["block_tokens"] = ParquetRows(path).about.block_tokens
    return found


def _workload(tree: Mapping[str, Any]) -> WorkloadConfig:
    reader = TreeReader(WorkloadConfig)
    workload: WorkloadConfig = reader.struct(
        WorkloadConfig, {"purpose": "named on the command line", **tree}, ""
    )
    if workload is UNREADABLE or reader.problems:
        raise ConfigError(*reader.problems)
    return workload
