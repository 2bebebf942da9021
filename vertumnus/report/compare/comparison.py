"""A comparison from its runs to its tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.report.compare.axes import Axes, label, split
from vertumnus.report.compare.members import Member, Members
from vertumnus.report.compare.metrics import Metric
from vertumnus.report.compare.pairing import Sample, Standing, standings, unpaired
from vertumnus.report.compare.phases import WHOLE, measured_values, phase_values
from vertumnus.report.compare.sameness import require_same_but_for_seed
from vertumnus.report.phases import phases


class Asked(NamedTuple):
    """What is to be compared, and how."""

    metrics: Sequence[Metric]
    by: Sequence[str] | None = None
    """Axes to compare; None: those whose values share their arrivals."""
    baseline: str | None = None
    """A group, as its label or a part of it; None: the first."""
    by_phase: bool = False


class Table(NamedTuple):
    """The groups of one scenario in one stretch of their runs."""

    execution: str
    scenario: str
    """Empty where there is only one."""
    stretch: str
    baseline: str
    standings: dict[str, list[Standing]]
    """By metric; each lists the same groups in the same order."""
    unpaired: list[str]


class Comparison(NamedTuple):
    """All tables of a comparison."""

    axes: Axes
    metrics: Sequence[Metric]
    tables: list[Table]
    left_out: list[str]


def compare(runs_dir: Path, members: Members, asked: Asked) -> Comparison:
    """Compare *members* as *asked*.

    Raises ConfigError when nothing can be compared, with the reason.
    """
    axes = split(members.runs, asked.by)
    tables = []
    for scenario, runs in _scenarios(members.runs, axes).items():
        groups = {run.run_id: label(run, axes.compared) for run in runs}
        require_same_but_for_seed(runs, groups)
        tables += _tables(runs_dir, scenario, runs, groups, asked)
    if not any(each.effect for table in tables for of in table.standings.values() for each in of):
        reasons = dict.fromkeys(reason for table in tables for reason in table.unpaired)
        raise ConfigError(*(f"cannot be paired: {reason}" for reason in reasons))
    return Comparison(axes, asked.metrics, tables, members.left_out)


def _scenarios(runs: Sequence[Member], axes: Axes) -> dict[tuple[str, str], list[Member]]:
    """Return the runs by (execution, scenario): simulated and executed ones never meet."""
    found: dict[tuple[str, str], list[Member]] = {}
    for run in runs:
        scenario = label(run, axes.scenario) if axes.scenario else ""
        found.setdefault((run.execution, scenario), []).append(run)
    return found


def _tables(
    runs_dir: Path, scenario: tuple[str, str], runs: Sequence[Member], groups: dict[str, str], asked: Asked
) -> list[Table]:
    baseline = _baseline(list(dict.fromkeys(groups.values())), asked.baseline)
    values, stretches = _values(runs_dir, runs, asked)
    tables = []
    for stretch in stretches:
        found, alone = {}, []
        for metric in asked.metrics:
            samples = [
                Sample(
                    groups[run.run_id], run.seed, run.arrivals, values.get((run.run_id, stretch, metric.name))
                )
                for run in runs
            ]
            found[metric.name] = standings(samples, baseline, metric)
            alone = unpaired(samples, baseline)
        tables.append(Table(*scenario, stretch, baseline, found, alone))
    return tables


def _values(
    runs_dir: Path, runs: Sequence[Member], asked: Asked
) -> tuple[dict[tuple[str, str, str], float | None], list[str]]:
    """Return the values by (run, stretch, metric), and the stretches in order."""
    if not asked.by_phase:
        found = run_values(runs_dir, runs, asked.metrics)
        return {(run, WHOLE.name, metric): value for (run, metric), value in found.items()}, [WHOLE.name]
    stretches = {run.run_id: [*phases(run.run_id, run.config), WHOLE] for run in runs}
    names = dict.fromkeys(stretch.name for of in stretches.values() for stretch in of)
    return phase_values(runs_dir, stretches, asked.metrics), list(names)


def run_values(
    runs_dir: Path, runs: Sequence[Member], metrics: Sequence[Metric]
) -> dict[tuple[str, str], float | None]:
    """Return the metrics of whole runs by (run id, metric)."""
    counted = [metric for metric in metrics if metric.column is None]
    found = measured_values(runs_dir, [run.run_id for run in runs], counted)
    told = ((run, metric) for run in runs for metric in metrics if metric.column is not None)
    return found | {(run.run_id, metric.name): metric.of_run(run.row) for run, metric in told}


def _baseline(groups: Sequence[str], wanted: str | None) -> str:
    if wanted is None:
        return groups[0]
    fitting = [group for group in groups if group == wanted] or [g for g in groups if wanted in g]
    if len(fitting) != 1:
        found = "no such group" if not fitting else counted(len(fitting), "group fits", "groups fit")
        raise ConfigError(f"--baseline {wanted}: {found}; there are: {', '.join(groups)}")
    return fitting[0]
