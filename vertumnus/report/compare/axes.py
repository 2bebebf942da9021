"""What differs between runs: the axes of a sweep, those that are compared and those that set the scene.

Two runs can be compared when they served the same arrivals. So an axis is compared when some two runs
with other values of it share their arrivals; an axis that always changes the arrivals, as a rate does,
makes scenarios of its own. The seed is neither: it pairs runs.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.report.compare.members import Member

NO_AXIS = ("seed", "runs_dir", "hydra.searchpath")
"""The seed pairs runs; the others say where files lie."""
COLUMNS = (
    "name",
    "policy",
    "controller",
    "workload",
    "model",
    "hardware",
    "composition",
    "offered_requests_per_s",
    "code_hash",
)
"""Columns of the runs table that can be grouped by, beside what was typed."""


class Axes(NamedTuple):
    """The axes of some runs, by role."""

    compared: tuple[str, ...]
    scenario: tuple[str, ...]


def differing(runs: Sequence[Member]) -> tuple[str, ...]:
    """Return the keys that were not typed the same for all *runs*, in the order typed."""
    keys = dict.fromkeys(key for run in runs for key in run.words if key not in NO_AXIS)
    typed = [key for key in keys if len({run.words.get(key) for run in runs}) > 1]
    code = ["code_hash"] if len({run.row["code_hash"] for run in runs}) > 1 else []
    return (*typed, *code)


def split(runs: Sequence[Member], by: Sequence[str] | None = None) -> Axes:
    """Return the axes of *runs*; *by* names those to compare, else their arrivals tell.

    Raises ConfigError when *by* names what does not differ, or when no two runs can be compared.
    """
    differ = differing(runs)
    if by is not None:
        if not by:
            raise ConfigError("--by: found nothing, must name what to compare")
        problems = [_no_axis(axis, runs, differ) for axis in by if not _is_axis(axis, runs)]
        if problems:
            raise ConfigError(*problems)
        return Axes(tuple(by), tuple(axis for axis in differ if axis not in by))
    compared = tuple(axis for axis in differ if _shares_arrivals(runs, axis))
    if not compared:
        raise ConfigError(_nothing_to_compare(runs, differ))
    return Axes(compared, tuple(axis for axis in differ if axis not in compared))


def value(run: Member, axis: str) -> str | None:
    """Return what *run* has for *axis*: as typed, else from its row; None where neither says."""
    if axis in run.words:
        return run.words[axis]
    told = run.row[axis] if axis in COLUMNS else _configured(run.config, axis)
    return None if told is None else f"{told:.4g}" if isinstance(told, float) else str(told)


def label(run: Member, axes: Iterable[str]) -> str:
    """Return what *run* has for *axes*: "policy=paper seed=0"; "default" where nothing is known."""
    named = ((axis, value(run, axis)) for axis in axes)
    return " ".join(f"{axis}={told}" for axis, told in named if told is not None) or "default"


def _configured(config: Any, path: str) -> object:
    """Return the plain value at *path* of *config*; of a part with a name, that name."""
    for key in path.split("."):
        config = config.get(key) if isinstance(config, dict) else None
    if isinstance(config, dict):
        config = config.get("name")
    return None if isinstance(config, list) else config


def _values(runs: Iterable[Member], axis: str) -> set[str | None]:
    return {value(run, axis) for run in runs}


def _shares_arrivals(runs: Iterable[Member], axis: str) -> bool:
    seen: dict[tuple[str, str], str | None] = {}
    return any(
        seen.setdefault((run.execution, run.arrivals), value(run, axis)) != value(run, axis) for run in runs
    )


def _is_axis(axis: str, runs: Iterable[Member]) -> bool:
    return axis not in NO_AXIS and len(_values(runs, axis)) > 1


def _no_axis(axis: str, runs: Sequence[Member], differ: Sequence[str]) -> str:
    known = ", ".join(differ) or "only the seed"
    if axis in NO_AXIS:
        return f"--by {axis}: runs are paired by their seeds, not compared by them; what differs: {known}"
    found = _values(runs, axis)
    if found == {None}:
        return f"--by {axis}: no run says anything of it; what differs: {known}"
    return f"--by {axis}: all runs have {axis}={found.pop()}; what differs: {known}"


def _nothing_to_compare(runs: Sequence[Member], differ: Sequence[str]) -> str:
    if not runs:
        return "no finished VALID run to compare"
    if len(runs) == 1:
        return "nothing to compare: found 1 run, needs two that differ"
    if not differ:
        return f"nothing to compare: the {counted(len(runs), 'run')} differ in nothing but the seed"
    return f"nothing to compare: no two runs served the same arrivals; what differs: {', '.join(differ)}"
