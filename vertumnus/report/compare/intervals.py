"""The mean of a few paired differences, and how far it can be trusted: Student's t interval."""

from collections.abc import Callable, Sequence
from math import atan, cos, expm1, log, pi, sin, sqrt
from statistics import fmean, stdev
from typing import NamedTuple

CONFIDENCE = 0.95


class Difference(NamedTuple):
    """A mean difference and its confidence interval."""

    mean: float
    low: float | None
    """None with one pair, which tells nothing of the spread."""
    high: float | None

    @property
    def is_apart_from_zero(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low is not None and self.high is not None and (self.low > 0.0 or self.high < 0.0)

    def through(self, rising: Callable[[float], float]) -> "Difference":
        """Return it with the rising function *rising* of mean and bounds."""
        low = None if self.low is None else rising(self.low)
        high = None if self.high is None else rising(self.high)
        return Difference(rising(self.mean), low, high)


def paired_difference(
    ours: Sequence[float], theirs: Sequence[float], confidence: float = CONFIDENCE
) -> Difference | None:
    """Return ours - theirs, pair by pair, with the t interval of its mean; None without a pair.

    With n pairs: mean +- t(n - 1) * s / sqrt(n), exact for normal differences.
    """
    differences = [mine - other for mine, other in zip(ours, theirs, strict=True)]
    count = len(differences)
    if count == 0:
        return None
    mean = fmean(differences)
    if count == 1:
        return Difference(mean, None, None)
    half = t_quantile(count - 1, confidence) * stdev(differences) / sqrt(count)
    return Difference(mean, mean - half, mean + half)


def paired_ratio(
    ours: Sequence[float], theirs: Sequence[float], confidence: float = CONFIDENCE
) -> Difference | None:
    """Return ours / theirs - 1 as the geometric mean over pairs, with its t interval on the logarithms.

    For what is above 0 and differs by factors, as latencies do: no bound falls below -100 %. None
    without a pair, or when a value is not above 0.
    """
    if any(value <= 0.0 for value in (*ours, *theirs)):
        return None
    logarithms = paired_difference([log(v) for v in ours], [log(v) for v in theirs], confidence)
    return None if logarithms is None else logarithms.through(expm1)


def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the t with P(|T| <= t) = *confidence* at *freedom* >= 1 degrees of freedom."""
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return (low + high) / 2.0


def _within(t: float, freedom: int) -> float:
    """Return P(|T| <= t) by the finite series for whole degrees of freedom (Abramowitz-Stegun 26.7.3-4)."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    series = 0.0
    for power in range(2 + odd, freedom + 1, 2):
        series += term
        term *= (power - 1) / power * cos(angle) ** 2
    return (angle + sin(angle) * series) * 2.0 / pi if odd else sin(angle) * series
