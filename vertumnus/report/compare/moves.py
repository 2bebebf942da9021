"""How a controller moved: how often, back and forth within a phase, and how soon after a change of phase."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from vertumnus.report.compare.members import Member
from vertumnus.report.phases import Stretch
from vertumnus.report.store import query


class Move(NamedTuple):
    """A split or merge that was carried out."""

    t_s: float
    """When it began."""
    kind: str


class Movement(NamedTuple):
    """What one run's moves amount to."""

    moves: int
    reversals: int
    """Changes of direction, split to merge or back, within a phase; the most of any phase."""
    first_s: tuple[float | None, ...]
    """For each phase but the first, from its start to the first move in it; None where there is none [s]."""


class GroupMovement(NamedTuple):
    """The runs of a group together."""

    group: str
    runs: int
    moves: float
    """Mean of a run."""
    reversals: int
    """The most of any run."""
    first_s: tuple[tuple[float | None, float | None], ...]
    """Median and longest of the runs that moved, for each phase but the first [s]."""
    still: tuple[int, ...]
    """Runs that did not move in that phase."""
    window_s: float | None
    """Of the controller; None where it has none."""


def movement(moves: Sequence[Move], phases: Sequence[Stretch]) -> Movement:
    """Return what *moves*, in order of time, amount to over *phases*."""
    by_phase = [[move for move in moves if each.start_s <= move.t_s < each.end_s] for each in phases]
    reversals = [sum(one.kind != next_.kind for one, next_ in pairwise(within)) for within in by_phase]
    first = tuple(
        within[0].t_s - phase.start_s if within else None
        for phase, within in zip(phases[1:], by_phase[1:], strict=True)
    )
    return Movement(len(moves), max(reversals, default=0), first)


def find_moves(runs_dir: Path, run_ids: Iterable[str]) -> dict[str, list[Move]]:
    """Return the moves of each of *run_ids*, in order of time."""
    found: dict[str, list[Move]] = {run_id: [] for run_id in run_ids}
    sql = "SELECT run_id, t_ns / 1e9, kind FROM reconfigs WHERE outcome = 'committed' ORDER BY t_ns, epoch"
    for run_id, t_s, kind in query(runs_dir, sql, only=list(found)).rows:
        found[run_id].append(Move(t_s, kind))
    return found


def group_movements(
    runs: Sequence[Member],
    groups: Mapping[str, str],
    moves: Mapping[str, Sequence[Move]],
    phases: Mapping[str, Sequence[Stretch]],
) -> list[GroupMovement]:
    """Return the movements of the groups in which any run moved; the mappings are by run id."""
    found: dict[str, list[Movement]] = {}
    windows: dict[str, float | None] = {}
    for run in runs:
        group = groups[run.run_id]
        found.setdefault(group, []).append(movement(moves[run.run_id], phases[run.run_id]))
        windows[group] = _window_s(run.config)
    return [
        _together(group, each, windows[group])
        for group, each in found.items()
        if any(one.moves for one in each)
    ]


def _together(group: str, runs: Sequence[Movement], window_s: float | None) -> GroupMovement:
    changes = list(zip(*(run.first_s for run in runs), strict=True))
    delays = [[delay for delay in change if delay is not None] for change in changes]
    return GroupMovement(
        group,
        len(runs),
        sum(run.moves for run in runs) / len(runs),
        max(run.reversals for run in runs),
        tuple((median(each), max(each)) if each else (None, None) for each in delays),
        tuple(len(runs) - len(each) for each in delays),
        window_s,
    )


def _window_s(config: Mapping[str, Any]) -> float | None:
    value = config.get("controller", {}).get("window_s")
    return float(value) if value is not None else None
