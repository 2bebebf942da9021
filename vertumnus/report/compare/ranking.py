"""The order of groups of runs as simulated beside their order as executed, and whether it is the same."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple, TypeAlias

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.report.compare.axes import differing, label
from vertumnus.report.compare.members import Member, Members
from vertumnus.report.compare.metrics import METRICS, Metric
from vertumnus.report.compare.pairing import Effect, Pairable, Sample, effect_of, pairable
from vertumnus.report.compare.sameness import require_same_but_for_seed

SHOWN: tuple[Metric, ...] = (METRICS["mean_ttft"], METRICS["p90_ttft"])
EXECUTIONS = ("simulated", "executed")

Verdict: TypeAlias = Literal[
    "same order", "other order", "executed not told apart", "simulated not told apart"
]
"""Not told apart: the interval of the difference holds zero."""


class Place(NamedTuple):
    """A group and its mean over seeds in either execution."""

    group: str
    seeds: dict[str, int]
    """That it has a value of, by execution, as what follows."""
    values: dict[str, float | None]
    ranks: dict[str, int | None]
    """From 1, the best."""


class Pair(NamedTuple):
    """Two groups, the better one as simulated first."""

    better: str
    other: str
    simulated: Effect
    """Of the other against the better one."""
    executed: Effect
    verdict: Verdict


class Order(NamedTuple):
    """All groups by one metric."""

    metric: Metric
    places: list[Place]
    pairs: list[Pair]
    """Those that share seeds in both executions."""


class Ranking(NamedTuple):
    """The orders by each metric."""

    orders: list[Order]
    left_out: list[str]


ByGroup: TypeAlias = Mapping[str, Pairable]


def ranking(_runs_dir: Path, members: Members) -> Ranking:
    """Return how the groups of *members* rank as simulated and as executed.

    Raises ConfigError when one of the two is missing or there is nothing to rank.
    """
    runs = {kind: [run for run in members.runs if run.execution == kind] for kind in EXECUTIONS}
    axes = list(dict.fromkeys(axis for of in runs.values() for axis in differing(of)))
    groups = {run.run_id: label(run, axes) for run in members.runs}
    _require_both(runs, groups)
    for of in runs.values():
        require_same_but_for_seed(of, groups)
    orders = [
        _order(metric, {kind: _by_group(of, groups, metric) for kind, of in runs.items()}) for metric in SHOWN
    ]
    return Ranking(orders, members.left_out)


def _require_both(runs: Mapping[str, Sequence[Member]], groups: Mapping[str, str]) -> None:
    found = {kind: {groups[run.run_id] for run in of} for kind, of in runs.items()}
    if not all(found.values()):
        counts = " and ".join(counted(len(of), f"{kind} run") for kind, of in runs.items())
        raise ConfigError(
            f"--figure ranking: found {counts}, needs both: name two sweeps, "
            "as +experiment=routing_live -m makes them with and without backend=sim model=none"
        )
    if len(found["simulated"] & found["executed"]) < 2:
        told = "; ".join(f"{kind}: {', '.join(sorted(of))}" for kind, of in found.items())
        raise ConfigError(
            f"--figure ranking: needs two groups that were simulated and executed; found {told}"
        )


def _by_group(runs: Iterable[Member], groups: Mapping[str, str], metric: Metric) -> ByGroup:
    """Return the values of each group of *runs*, the best mean first; groups without a value are left out."""
    samples = [Sample(groups[run.run_id], run.seed, run.arrivals, metric.of_run(run.row)) for run in runs]
    found = {group: pairable(samples, group) for group in dict.fromkeys(each.group for each in samples)}
    told = {group: fmean(values.values()) for group, values in found.items() if values}
    return {
        group: found[group]
        for group in sorted(told, key=told.__getitem__, reverse=not metric.lower_is_better)
    }


def _order(metric: Metric, values: Mapping[str, ByGroup]) -> Order:
    groups = dict.fromkeys(group for kind in EXECUTIONS for group in values[kind])
    both = [group for group in values["simulated"] if group in values["executed"]]
    pairs = [_pair(better, other, metric, values) for better, other in combinations(both, 2)]
    return Order(metric, [_place(group, values) for group in groups], [pair for pair in pairs if pair])


def _place(group: str, values: Mapping[str, ByGroup]) -> Place:
    of = {kind: values[kind].get(group) for kind in EXECUTIONS}
    return Place(
        group,
        seeds={kind: len(found or ()) for kind, found in of.items()},
        values={kind: fmean(found.values()) if found else None for kind, found in of.items()},
        ranks={kind: list(values[kind]).index(group) + 1 if found else None for kind, found in of.items()},
    )


def _pair(better: str, other: str, metric: Metric, values: Mapping[str, ByGroup]) -> Pair | None:
    """Return two groups in their order as simulated; None unless they share a seed in both executions."""
    effects = {kind: effect_of(values[kind][other], values[kind][better], metric) for kind in EXECUTIONS}
    simulated, executed = effects["simulated"], effects["executed"]
    if simulated is None or executed is None:
        return None
    return Pair(better, other, simulated, executed, _verdict(simulated, executed))


def _verdict(simulated: Effect, executed: Effect) -> Verdict:
    if not simulated.decides:
        return "simulated not told apart"
    if not executed.decides:
        return "executed not told apart"
    return "same order" if simulated.is_lower == executed.is_lower else "other order"
