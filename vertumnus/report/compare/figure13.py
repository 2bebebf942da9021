"""Fig. 13: each controller against every fixed composition, phase by phase, beside what the paper states."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.report.compare.axes import label, split
from vertumnus.report.compare.members import Member, Members
from vertumnus.report.compare.metrics import METRICS
from vertumnus.report.compare.moves import GroupMovement, find_moves, group_movements
from vertumnus.report.compare.pairing import Effect, Sample, effect_of, pairable
from vertumnus.report.compare.phases import WHOLE, phase_values
from vertumnus.report.compare.sameness import require_same_but_for_seed
from vertumnus.report.phases import phases

TTFT = METRICS["mean_ttft"]


class Statement(NamedTuple):
    """A comparison in the text of sec. 9: the adaptive system in a phase against a fixed composition."""

    stretch: str
    composition: str
    """As runs store it."""
    change: float
    """Of the mean TTFT, as a share."""


PAPER = (
    Statement("phase 2", "4 x CP4 + 3 x CP8", -0.196),
    Statement("phase 4", "4 x CP4 + 3 x CP8", -0.055),
    Statement("phase 4", "6 x CP4 + 2 x CP8", -0.145),
)
"""Minutes 6-17 with many short prompts are phase 2, minutes 22-33 with few long ones are phase 4."""


class Beside(NamedTuple):
    """A statement of the paper, and the same comparison in our runs."""

    group: str
    statement: Statement
    ours: Effect


class Figure13(NamedTuple):
    """The whole table."""

    execution: str
    stretches: list[str]
    adaptive: list[str]
    fixed: list[str]
    """Groups whose composition stays, by their composition."""
    means: dict[tuple[str, str], float | None]
    """Mean TTFT by (group, stretch), over seeds [s]."""
    against_best: dict[tuple[str, str], tuple[str, Effect | None]]
    """For each adaptive group and stretch the fixed composition with the least mean, and the difference."""
    paper: list[Beside]
    movements: list[GroupMovement]
    left_out: list[str]


def figure13(runs_dir: Path, members: Members) -> Figure13:
    """Return the figure's table of *members*: runs with ``controller=off`` are the fixed compositions.

    Phases without a measured request, of runs that were cut short, are left out. Raises ConfigError when
    there are no fixed or no adaptive runs, or no phases.
    """
    runs, groups = _grouped(members)
    stretches = {run.run_id: phases(run.run_id, run.config) for run in runs}
    named = dict.fromkeys(each.name for of_run in stretches.values() for each in of_run)
    values = phase_values(runs_dir, {run: [*of, WHOLE] for run, of in stretches.items()}, [TTFT])
    table = _Table(runs, groups, values)
    names = [name for name in (*named, WHOLE.name) if table.is_measured(name)]
    adaptive = [group for group in table.order if group not in table.fixed]
    moves = find_moves(runs_dir, stretches)
    return Figure13(
        runs[0].execution,
        names,
        adaptive,
        table.fixed,
        {(group, name): table.mean(group, name) for group in table.order for name in names},
        {(group, name): table.against_best(group, name) for group in adaptive for name in names},
        [each for group in adaptive for each in table.beside(group)],
        group_movements(runs, groups, moves, stretches),
        members.left_out,
    )


def _grouped(members: Members) -> tuple[list[Member], dict[str, str]]:
    """Return the runs, and each one's group: its composition where that stays, else what differs."""
    runs = members.runs
    axes = split(runs).compared
    kinds = {run.execution for run in runs}
    fixed = [run for run in runs if run.row["controller"] == "off"]
    if len(kinds) > 1:
        raise ConfigError("--figure 13: found simulated and executed runs; name those of one kind")
    if not fixed or len(fixed) == len(runs):
        raise ConfigError(
            f"--figure 13: found {counted(len(fixed), 'run')} with controller=off and "
            f"{counted(len(runs) - len(fixed), 'other')}, "
            "needs fixed compositions and adaptive runs: vertumnus +experiment=reconfigure -m"
        )
    groups = {run.run_id: str(run.row["composition"]) for run in fixed}
    groups |= {run.run_id: label(run, axes) for run in runs if run.run_id not in groups}
    require_same_but_for_seed(runs, groups)
    return runs, groups


class _Table:
    """Mean TTFT by group and stretch, and what follows from it."""

    def __init__(
        self,
        runs: Sequence[Member],
        groups: Mapping[str, str],
        values: Mapping[tuple[str, str, str], float | None],
    ) -> None:
        self._runs = runs
        self._groups = groups
        self._values = values
        self.order = list(dict.fromkeys(groups[run.run_id] for run in runs))
        off = {groups[run.run_id] for run in runs if run.row["controller"] == "off"}
        self.fixed = [group for group in self.order if group in off]

    def mean(self, group: str, stretch: str) -> float | None:
        values = pairable(self._samples(stretch), group).values()
        return sum(values) / len(values) if values else None

    def is_measured(self, stretch: str) -> bool:
        """Return whether a fixed composition has a value in *stretch*."""
        return any(self.mean(group, stretch) is not None for group in self.fixed)

    def effect(self, group: str, other: str, stretch: str) -> Effect | None:
        samples = self._samples(stretch)
        return effect_of(pairable(samples, group), pairable(samples, other), TTFT)

    def against_best(self, group: str, stretch: str) -> tuple[str, Effect | None]:
        means = {other: self.mean(other, stretch) for other in self.fixed}
        best = min((mean, other) for other, mean in means.items() if mean is not None)[1]
        return best, self.effect(group, best, stretch)

    def beside(self, group: str) -> list[Beside]:
        """Return the paper's statements that our runs can stand beside."""
        found = []
        for statement in PAPER:
            ours = self.effect(group, statement.composition, statement.stretch)
            if ours is not None:
                found.append(Beside(group, statement, ours))
        return found

    def _samples(self, stretch: str) -> list[Sample]:
        return [
            Sample(
                self._groups[run.run_id],
                run.seed,
                run.arrivals,
                self._values.get((run.run_id, stretch, TTFT.name)),
            )
            for run in self._runs
        ]
