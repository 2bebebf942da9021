"""Samples in groups, paired by what they served, and what their differences are worth."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Literal, NamedTuple, TypeAlias

from vertumnus.report.compare.intervals import Difference, paired_difference, paired_ratio
from vertumnus.report.compare.metrics import Metric

Mark: TypeAlias = Literal["best", "better", "worse", ""]
"""Best: better than every other group; better or worse than the baseline; "": not told apart."""


class Sample(NamedTuple):
    """One run's value of a metric."""

    group: str
    seed: int
    arrivals: str
    value: float | None


class Effect(NamedTuple):
    """How a group differs from another over the pairs of both."""

    pairs: int
    difference: Difference
    """In the metric's unit."""
    ratio: Difference | None
    """As a share of the other: the geometric mean of the ratios, less 1."""
    decides: bool
    """Whether the interval that suits the metric leaves zero out."""

    @property
    def is_lower(self) -> bool:
        """Whether the group has the lower values."""
        return (self.difference if self.ratio is None else self.ratio).mean < 0.0


class Standing(NamedTuple):
    """One group among those of its scenario."""

    group: str
    runs: int
    value: float | None
    """Mean over its seeds; runs of one seed and one stream count once."""
    effect: Effect | None
    """Against the baseline; None for the baseline itself, and where nothing pairs."""
    mark: Mark


Pairable: TypeAlias = Mapping[tuple[int, str], float]
"""A group's value for each (seed, arrivals)."""


def standings(samples: Sequence[Sample], baseline: str, metric: Metric) -> list[Standing]:
    """Return how each group stands against *baseline*, in the order in which groups first occur.

    Several runs of a group with one seed and the same arrivals are repeats: their mean is one sample.
    """
    groups = {group: pairable(samples, group) for group in dict.fromkeys(each.group for each in samples)}
    runs = {group: sum(each.group == group for each in samples) for group in groups}
    best = _best(groups, metric)
    found = []
    for group, values in groups.items():
        effect = None if group == baseline else effect_of(values, groups[baseline], metric)
        mark: Mark = "best" if group == best else _mark(effect, metric)
        mean = fmean(values.values()) if values else None
        found.append(Standing(group, runs[group], mean, effect, mark))
    return found


def pairable(samples: Iterable[Sample], group: str) -> Pairable:
    """Return the values of *group* by what they can be paired on; undefined ones are left out."""
    found: dict[tuple[int, str], list[float]] = {}
    for each in samples:
        if each.group == group and each.value is not None:
            found.setdefault((each.seed, each.arrivals), []).append(each.value)
    return {key: fmean(values) for key, values in found.items()}


def effect_of(ours: Pairable, theirs: Pairable, metric: Metric) -> Effect | None:
    """Return how *ours* differs from *theirs*; None without a pair."""
    keys = sorted(ours.keys() & theirs.keys())
    mine, others = [ours[key] for key in keys], [theirs[key] for key in keys]
    difference = paired_difference(mine, others)
    if difference is None:
        return None
    ratio = paired_ratio(mine, others) if metric.by_ratio else None
    return Effect(len(keys), difference, ratio, (ratio or difference).is_apart_from_zero)


def unpaired(samples: Sequence[Sample], baseline: str) -> list[str]:
    """Return why runs of the other groups have no partner among those of *baseline*, one line each."""
    partners = {(each.seed, each.arrivals) for each in samples if each.group == baseline}
    seeds = {seed for seed, _ in partners}
    alone: dict[tuple[str, str], list[int]] = {}
    for each in samples:
        if (each.seed, each.arrivals) not in partners:
            why = "its arrivals are others" if each.seed in seeds else "the baseline has no such seed"
            alone.setdefault((each.group, why), []).append(each.seed)
    return [
        f"{group}, seed {', '.join(map(str, sorted(found)))}: {why}" for (group, why), found in alone.items()
    ]


def _best(groups: Mapping[str, Pairable], metric: Metric) -> str | None:
    """Return the group that is better than each other one beyond the interval; None when none is."""
    for group, values in groups.items():
        others = [effect_of(values, other, metric) for name, other in groups.items() if name != group]
        if others and all(_mark(each, metric) == "better" for each in others):
            return group
    return None


def _mark(effect: Effect | None, metric: Metric) -> Literal["better", "worse", ""]:
    if effect is None or not effect.decides:
        return ""
    return "better" if effect.is_lower == metric.lower_is_better else "worse"
