"""The runs of a group have to be the same but for the seed, whatever their words say."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vertumnus.domain.errors import ConfigError
from vertumnus.report.compare.members import Member

SETTLED = ("initial", "cluster.composition", "arrival")
"""Settled when a run starts where a historical slice chose its first composition."""


def require_same_but_for_seed(runs: Sequence[Member], groups: Mapping[str, str]) -> None:
    """Raise ConfigError when two runs of a group, which *groups* tells by run id, differ in their config."""
    first: dict[str, Member] = {}
    for run in runs:
        other = first.setdefault(groups[run.run_id], run)
        differ = [key for key in _differing(run.config, other.config) if key not in ("seed", "name")]
        if is_settled(run):
            differ = [key for key in differ if not key.startswith(SETTLED)]
        if differ:
            raise ConfigError(
                f"{run.run_id} and {other.run_id} are both {groups[run.run_id]}, but differ in "
                f"{', '.join(differ[:5])}; compare them with: --by {differ[0]}"
            )


def is_settled(run: Member) -> bool:
    """Return whether the first composition was chosen when *run* started."""
    return bool((run.config.get("initial") or {}).get("reason"))


def _differing(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Yield the keys at which two plain configs differ."""
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        if ours != theirs:
            yield path
        return
    for key in dict.fromkeys((*ours, *theirs)):
        yield from _differing(ours.get(key), theirs.get(key), f"{path}.{key}" if path else key)
