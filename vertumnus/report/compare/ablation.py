"""What each switch of `policy=vertumnus` is worth: A to E one at a time, added up, and left out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.report.compare.axes import label, split
from vertumnus.report.compare.comparison import run_values
from vertumnus.report.compare.members import Member, Members
from vertumnus.report.compare.metrics import METRICS
from vertumnus.report.compare.pairing import Effect, Sample, effect_of, pairable

SWITCHES = {
    "A": "remaining_queue",
    "B": "pending_prefix",
    "C": "pull",
    "D": "shortest_first",
    "E": "externality",
}
"""By letter, in the order in which they are added up."""
NONE, ALL = "none", "".join(SWITCHES)
MEAN = METRICS["mean_ttft"]
JUDGED = (MEAN, METRICS["p90_ttft"], METRICS["attainment"], METRICS["long_attainment"])


class Row(NamedTuple):
    """One variant in one scenario."""

    scenario: str
    variant: str
    """The letters of the switches that are on."""
    values: dict[str, float | None]
    """By metric, over seeds."""
    against_none: dict[str, Effect | None]
    """By metric, against all switches off, which is the published policy with the same weights."""


class Ablation(NamedTuple):
    """The whole table."""

    execution: str
    rows: list[Row]
    left_out: list[str]


def ablation(runs_dir: Path, members: Members) -> Ablation:
    """Return the table of *members*, runs of ``policy=vertumnus``.

    Raises ConfigError when there are others, or none with all switches off.
    """
    runs = members.runs
    variants = _variants(runs)
    axes = split(runs)
    values = run_values(runs_dir, runs, JUDGED)
    scenarios: dict[str, list[Member]] = {}
    for run in runs:
        scenarios.setdefault(label(run, axes.scenario) if axes.scenario else "", []).append(run)
    return Ablation(
        runs[0].execution,
        [row for name, here in scenarios.items() for row in _rows(name, here, variants, values)],
        members.left_out,
    )


def _rows(
    scenario: str,
    runs: Sequence[Member],
    variants: Mapping[str, str],
    values: Mapping[tuple[str, str], float | None],
) -> list[Row]:
    def found(variant: str) -> tuple[dict[str, float | None], dict[str, Effect | None]]:
        means: dict[str, float | None] = {}
        effects: dict[str, Effect | None] = {}
        for metric in JUDGED:
            samples = [
                Sample(variants[r.run_id], r.seed, r.arrivals, values.get((r.run_id, metric.name)))
                for r in runs
            ]
            ours, none = pairable(samples, variant), pairable(samples, NONE)
            means[metric.name] = sum(ours.values()) / len(ours) if ours else None
            effects[metric.name] = None if variant == NONE else effect_of(ours, none, metric)
        return means, effects

    here = {variants[run.run_id] for run in runs}
    return [Row(scenario, variant, *found(variant)) for variant in sorted(here, key=_order)]


def _order(variant: str) -> tuple[int, int, str]:
    """Sort what adds up first, then single switches, then all but one."""
    if variant == NONE or ALL.startswith(variant):
        return 0, 0 if variant == NONE else len(variant), variant
    return 1, len(variant), variant


def _variants(runs: Sequence[Member]) -> dict[str, str]:
    """Return each run's switches that are on, by their letters."""
    if not runs:
        raise ConfigError("--figure ablation: found no finished VALID run")
    variants = {run.run_id: _variant(run.run_id, run.config["policy"]) for run in runs}
    if NONE not in variants.values():
        raise ConfigError("--figure ablation: found no run with all switches off, against which others count")
    return variants


def _variant(run_id: str, policy: Mapping[str, Any]) -> str:
    if policy["name"] != "vertumnus":
        raise ConfigError(
            f"--figure ablation: {run_id} has policy={policy['name']}; needs runs of policy=vertumnus alone: "
            "vertumnus +experiment=routing_ablation -m"
        )
    return "".join(letter for letter, key in SWITCHES.items() if policy[key]) or NONE
