"""Figs. 7-12: every policy in every cell and at every rate, our margin, and what the paper states."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.report.compare.comparison import run_values
from vertumnus.report.compare.members import Member, Members
from vertumnus.report.compare.metrics import METRICS, Metric
from vertumnus.report.compare.pairing import Effect, Pairable, Sample, effect_of, pairable
from vertumnus.report.compare.sameness import require_same_but_for_seed
from vertumnus.report.compare.statements import GAINS, Gain

OURS, PUBLISHED = "vertumnus", "paper_tuned"
BASELINES = ("homo", "static_tuned", "vllm_dp", "sglang_cache_aware")
"""Those of sec. 9.1."""
LEVELS = ("lowest", "low", "middle", "high", "highest")
MEAN, BOUND = METRICS["mean_ttft"], METRICS["over_bound"]
JUDGED = (MEAN, METRICS["p90_ttft"], METRICS["attainment"], METRICS["long_attainment"])
"""What a margin is told in."""
PARTS = (METRICS["queue"], METRICS["prefill"], METRICS["hit_rate"])
"""Where a gain in mean TTFT comes from."""

Place = tuple[str, str]
"""A cell and a level."""


class Margin(NamedTuple):
    """A policy against another in one cell at one rate."""

    cell: str
    level: str
    policy: str
    against: str
    effects: dict[str, Effect | None]
    """By metric; None where nothing pairs or the metric says nothing, as of long prompts where none came."""


class Beside(NamedTuple):
    """A gain that the paper states at the highest rate, and the same in our runs."""

    gain: Gain
    against: str
    """The strongest of the paper's baselines here, by mean TTFT."""
    ours: Effect | None
    parts: dict[str, Effect | None]
    """Of a gain in mean TTFT, by metric; empty for others."""


class RoutingGrid(NamedTuple):
    """All tables of the grid."""

    execution: str
    is_closed_loop: bool
    """Whether follow-ups wait for the answer before them, in all runs or in none."""
    places: list[Place]
    rates: dict[Place, float]
    policies: list[str]
    values: dict[tuple[str, str, str, str], float | None]
    """Mean over seeds by (cell, level, policy, metric)."""
    best: dict[Place, str | None]
    """The policy with a lower mean TTFT than each other one beyond the interval; None when none has."""
    margins: list[Margin]
    """Ours against the published policy, then against whichever other is the strongest by mean TTFT."""
    gains: list[Beside]
    left_out: list[str]


def routing_grid(runs_dir: Path, members: Members) -> RoutingGrid:
    """Return the tables of *members*. Raises ConfigError when they are not of the grid."""
    runs = members.runs
    _require_grid(runs)
    require_same_but_for_seed(runs, {run.run_id: " ".join(_key(run)) for run in runs})
    table = _Table(runs, run_values(runs_dir, runs, (*JUDGED, BOUND, *PARTS)))
    return RoutingGrid(
        runs[0].execution,
        _is_closed_loop(runs[0]),
        table.places,
        {_place(run): float(run.row["offered_requests_per_s"]) for run in runs},
        table.policies,
        {(*key, metric.name): table.mean(key, metric) for key in table.keys for metric in (*JUDGED, BOUND)},
        {place: table.best(place) for place in table.places},
        [each for place in table.places for each in table.margins(place)],
        [each for place in table.places for each in table.beside(place)],
        members.left_out,
    )


def _require_grid(runs: Sequence[Member]) -> None:
    if not runs:
        raise ConfigError("--figure 7-12: found no finished VALID run")
    lacking = next((run for run in runs if not {"cell", "grid.level", "policy"} <= run.words.keys()), None)
    if lacking is not None:
        raise ConfigError(
            f"--figure 7-12: {lacking.run_id} names no cell, grid.level and policy, as the runs of "
            "vertumnus +experiment=routing_grid -m do"
        )
    if len({run.execution for run in runs}) > 1:
        raise ConfigError("--figure 7-12: found simulated and executed runs; name those of one kind")
    if len({_is_closed_loop(run) for run in runs}) > 1:
        raise ConfigError("--figure 7-12: found runs in open and in closed loop; name those of one kind")


def _is_closed_loop(run: Member) -> bool:
    return bool(run.config["arrival"].get("closed_loop"))


def _place(run: Member) -> Place:
    return run.words["cell"], run.words["grid.level"]


def _key(run: Member) -> tuple[str, str, str]:
    return (*_place(run), run.words["policy"])


class _Table:
    """Values by cell, level and policy, and what follows from them."""

    def __init__(self, runs: Sequence[Member], values: Mapping[tuple[str, str], float | None]) -> None:
        self._values = values
        self._runs: dict[tuple[str, str, str], list[Member]] = {}
        for run in runs:
            self._runs.setdefault(_key(run), []).append(run)
        self.keys = list(self._runs)
        cells = list(dict.fromkeys(cell for cell, _, _ in self.keys))
        found = {(cell, level) for cell, level, _ in self.keys}
        self.places = [(cell, level) for cell in cells for level in LEVELS if (cell, level) in found]
        self.policies = list(dict.fromkeys(policy for _, _, policy in self.keys))

    def mean(self, key: tuple[str, str, str], metric: Metric) -> float | None:
        values = self._pairable(key, metric).values()
        return sum(values) / len(values) if values else None

    def best(self, place: Place) -> str | None:
        here = self._policies_at(place)
        for policy in here:
            effects = [self._effect(place, policy, other, MEAN) for other in here if other != policy]
            if effects and all(effect and effect.decides and effect.is_lower for effect in effects):
                return policy
        return None

    def margins(self, place: Place) -> list[Margin]:
        """Return ours against the published policy and against the strongest of the others."""
        others = [each for each in self._policies_at(place) if each not in (OURS, PUBLISHED)]
        against = [PUBLISHED, self._strongest(place, others)]
        return [
            Margin(*place, OURS, other, self._effects(place, OURS, other, JUDGED))
            for other in against
            if other is not None and {(*place, OURS), (*place, other)} <= self._runs.keys()
        ]

    def beside(self, place: Place) -> list[Beside]:
        """Return what the paper states of *place*, beside ours against the strongest of its baselines."""
        strongest = self._strongest(place, [each for each in self._policies_at(place) if each in BASELINES])
        if place[1] != LEVELS[-1] or strongest is None or (*place, PUBLISHED) not in self._runs:
            return []
        effects = self._effects(place, PUBLISHED, strongest, JUDGED)
        parts = self._effects(place, PUBLISHED, strongest, PARTS)
        return [
            Beside(gain, strongest, effects[gain.metric], parts if gain.metric == MEAN.name else {})
            for gain in GAINS
            if gain.cell == place[0]
        ]

    def _policies_at(self, place: Place) -> list[str]:
        return [policy for policy in self.policies if (*place, policy) in self._runs]

    def _strongest(self, place: Place, policies: Sequence[str]) -> str | None:
        means = {policy: self.mean((*place, policy), MEAN) for policy in policies}
        known = [(mean, policy) for policy, mean in means.items() if mean is not None]
        return min(known)[1] if known else None

    def _effects(
        self, place: Place, policy: str, other: str, metrics: Sequence[Metric]
    ) -> dict[str, Effect | None]:
        return {metric.name: self._effect(place, policy, other, metric) for metric in metrics}

    def _effect(self, place: Place, policy: str, other: str, metric: Metric) -> Effect | None:
        ours, theirs = self._pairable((*place, policy), metric), self._pairable((*place, other), metric)
        return effect_of(ours, theirs, metric)

    def _pairable(self, key: tuple[str, str, str], metric: Metric) -> Pairable:
        samples = [
            Sample(key[2], run.seed, run.arrivals, self._values.get((run.run_id, metric.name)))
            for run in self._runs[key]
        ]
        return pairable(samples, key[2])
