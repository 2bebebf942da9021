"""Fig. 14: the prefix manager against none over the rates, beside what the paper states, and its cost."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.report.compare.axes import differing, label
from vertumnus.report.compare.members import Member, Members
from vertumnus.report.compare.metrics import METRICS, Metric
from vertumnus.report.compare.pairing import Effect, Pairable, Sample, effect_of, pairable
from vertumnus.report.compare.sameness import require_same_but_for_seed
from vertumnus.report.compare.traffic import Traffic, bytes_per_saved_ms, find_traffic, mean_traffic

SHOWN: tuple[Metric, ...] = (METRICS["mean_ttft"], METRICS["p90_ttft"], METRICS["hit_rate"])
RATE = "arrival.rate"


class Statement(NamedTuple):
    """What the text of sec. 9 says of the manager at a rate."""

    rate: float
    """[requests/s]."""
    metric: str
    change: float
    """Against none, as a share."""


PAPER = (Statement(60.0, "mean_ttft", -0.103), Statement(60.0, "p90_ttft", -0.187))


class Cell(NamedTuple):
    """The runs with one setting of the cache in one scenario at one rate."""

    scenario: str
    """What else differs: the policy; empty where nothing does."""
    rate: float | None
    """Of the config [requests/s]; None where it names none."""
    cache: str
    is_off: bool
    """Whether nothing is replicated or reclaimed: what the others are held against."""
    runs: int
    means: dict[str, float | None]
    """By metric, over seeds."""
    effects: dict[str, Effect | None]
    """By metric, against the cell without; None for that one, and where nothing pairs."""
    traffic: Traffic
    """Of a run, the mean."""
    bytes_per_saved_ms: float | None
    """Bytes copied beyond those without, for each millisecond of TTFT saved; None where none was."""


class Beside(NamedTuple):
    """A statement of the paper, and ours at the same rate."""

    statement: Statement
    scenario: str
    cache: str
    ours: Effect


class Figure14(NamedTuple):
    """The whole table."""

    execution: str
    cells: list[Cell]
    """By scenario, rate, cache; the one without first."""
    paper: list[Beside]
    left_out: list[str]


def figure14(runs_dir: Path, members: Members) -> Figure14:
    """Return the figure's table of *members*: runs whose manager does nothing are those without.

    Raises ConfigError when runs with or without are missing, or simulated and executed ones meet.
    """
    runs = members.runs
    _require_both(runs)
    groups = _groups(runs)
    require_same_but_for_seed(runs, {run_id: str(group) for run_id, group in groups.items()})
    table = _Table(runs, groups, find_traffic(runs_dir, list(groups)))
    cells = [table.cell(group) for group in sorted(set(groups.values()), key=_order)]
    return Figure14(runs[0].execution, cells, _beside(cells), members.left_out)


class _Group(NamedTuple):
    scenario: str
    rate: float | None
    cache: str
    is_off: bool


def _order(group: _Group) -> tuple[str, float, bool, str]:
    return group.scenario, group.rate or 0.0, not group.is_off, group.cache


def _is_off(run: Member) -> bool:
    manager = run.config["cache"]["manager"]
    return not any(manager.get(part) for part in ("inter", "intra", "reclaim", "prefetch"))


def _require_both(runs: Sequence[Member]) -> None:
    if len({run.execution for run in runs}) > 1:
        raise ConfigError("--figure 14: found simulated and executed runs; name those of one kind")
    off = sum(map(_is_off, runs))
    if off in (0, len(runs)):
        raise ConfigError(
            f"--figure 14: found {counted(off, 'run')} with cache=off and {len(runs) - off} with a "
            f"prefix manager, "
            "needs both: vertumnus +experiment=cache_ablation -m"
        )


def _groups(runs: Sequence[Member]) -> dict[str, _Group]:
    """Return each run's group: what it has for the axes of the cache, the rate, and all others."""
    axes = differing(runs)
    cache = [axis for axis in axes if axis == "cache" or axis.startswith("cache.")]
    others = [axis for axis in axes if axis not in cache and axis != RATE]
    return {
        run.run_id: _Group(
            label(run, others) if others else "",
            run.config["arrival"]["rate"],
            label(run, cache),
            _is_off(run),
        )
        for run in runs
    }


class _Table:
    """Values and copies by group."""

    def __init__(
        self, runs: Sequence[Member], groups: Mapping[str, _Group], traffic: Mapping[str, Traffic]
    ) -> None:
        self._of_group: dict[_Group, list[Member]] = {}
        for run in runs:
            self._of_group.setdefault(groups[run.run_id], []).append(run)
        self._traffic = traffic

    def cell(self, group: _Group) -> Cell:
        runs = self._of_group[group]
        without = self._without(group)
        return Cell(
            *group,
            runs=len(runs),
            means={metric.name: _mean(_values(runs, metric)) for metric in SHOWN},
            effects={
                metric.name: None
                if group.is_off
                else effect_of(_values(runs, metric), _values(without, metric), metric)
                for metric in SHOWN
            },
            traffic=mean_traffic([self._traffic[run.run_id] for run in runs]),
            bytes_per_saved_ms=None if group.is_off else bytes_per_saved_ms(self._pairs(runs, without)),
        )

    def _without(self, group: _Group) -> list[Member]:
        """Return the runs without a manager that differ from those of *group* in nothing else."""
        return [
            run
            for other, runs in self._of_group.items()
            for run in runs
            if other.is_off and (other.scenario, other.rate) == (group.scenario, group.rate)
        ]

    def _pairs(self, runs: Sequence[Member], without: Sequence[Member]) -> list[tuple[Traffic, Traffic]]:
        theirs = {(run.seed, run.arrivals): self._traffic[run.run_id] for run in without}
        keyed = [((run.seed, run.arrivals), self._traffic[run.run_id]) for run in runs]
        return [(ours, theirs[key]) for key, ours in keyed if key in theirs]


def _values(runs: Sequence[Member], metric: Metric) -> Pairable:
    samples = (Sample("", run.seed, run.arrivals, metric.of_run(run.row)) for run in runs)
    return pairable(samples, "")


def _mean(values: Pairable) -> float | None:
    return fmean(values.values()) if values else None


def _beside(cells: Sequence[Cell]) -> list[Beside]:
    return [
        Beside(statement, cell.scenario, cell.cache, effect)
        for cell in cells
        for statement in PAPER
        if cell.rate == statement.rate and (effect := cell.effects[statement.metric]) is not None
    ]
