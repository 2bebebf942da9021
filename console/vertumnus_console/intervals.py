"""Medians of few measurements, with how sure they are; for the benches."""

from collections.abc import Iterable
from math import comb
from statistics import median
from typing import NamedTuple

LEVEL = 0.95


class Interval(NamedTuple):
    """A median, and two values between which the true one lies, as surely as `LEVEL` where it can be."""

    median: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        return f"{self.median:{spec}} [{self.low:{spec}}-{self.high:{spec}}]"


def interval(values: Iterable[float]) -> Interval:
    """Return the median of *values* between two of them, the innermost that hold it at `LEVEL`.

    Of n values, the true median is below the k-th or above the k-th from the top with twice the binomial
    probability of fewer than k; below six values even the outermost two are less sure.
    """
    ordered = sorted(values)
    count, outside, place = len(ordered), 0.0, 0
    for below in range(count // 2):
        outside += 2 * comb(count, below) / 2**count
        if outside > 1.0 - LEVEL:
            break
        place = below
    return Interval(median(ordered), ordered[place], ordered[count - 1 - place])
