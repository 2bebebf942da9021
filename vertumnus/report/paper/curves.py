"""Series of means over seeds, with their intervals."""

from collections.abc import Iterable, Mapping
from math import inf

from vertumnus.report.compare.intervals import Difference
from vertumnus.report.compare.members import Member
from vertumnus.report.compare.metrics import Metric
from vertumnus.report.paper.chapter import mean_of
from vertumnus.report.paper.panels import Series


def curve(
    label: str, means: Mapping[float, Difference | None], scale: float = 1.0, most: float = inf
) -> Series:
    """Return the series of *means* by x, times *scale*; places without a mean are left out.

    An interval ends at 0 and at *most*, before scaling, where what is measured does.
    """
    known = {
        x: mean.through(lambda value: scale * min(max(value, 0.0), most))
        for x, mean in sorted(means.items())
        if mean
    }
    return Series(
        label,
        list(known),
        [mean.mean for mean in known.values()],
        low=[mean.low for mean in known.values()],
        high=[mean.high for mean in known.values()],
    )


def rate_curve(label: str, runs: Iterable[Member], metric: Metric, scale: float) -> Series:
    """Return *metric* of *runs* over the request rate that each was given [requests/s]."""
    rates: dict[float, list[float | None]] = {}
    for run in runs:
        rates.setdefault(rate_of(run), []).append(metric.of_run(run.row))
    means = {rate: mean_of(values) for rate, values in rates.items()}
    return curve(label, means, scale, most=inf if metric.by_ratio else 1.0)


def rate_of(run: Member) -> float:
    """Return the request rate that *run* was given [requests/s]."""
    return float(run.config["arrival"]["rate"])
