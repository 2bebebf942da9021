"""How far a number measured on one part of a trace holds for the next, and how two candidates differ.

A part is cut into consecutive segments of as many requests. Traffic drifts, so the next part is taken to be
one more segment, not the mean of many that are independent: the margin does not shrink with their number.
"""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from vertumnus_profiling.tune.objectives import Floats, Requests

SEGMENTS = 6
RARE = 3.0
"""-log(5 %): the mean of a Poisson count that is zero 5 times of 100."""
STUDENT_T = 2.571
"""Of 95 % with SEGMENTS - 1 degrees of freedom."""


class Estimate(NamedTuple):
    """A number and how far off it may be, 95 times of 100."""

    value: float
    margin: float

    def holds(self, found: float) -> bool:
        """Return whether *found* is within the margin."""
        return abs(found - self.value) <= self.margin


def forecast(values: Floats, weights: Floats) -> Estimate:
    """Return the weighted mean of *values* and how far that of the next part may be from it."""
    means = _segment_means(values, weights)
    spread = float(np.std(means, ddof=1))
    return Estimate(float(np.average(values, weights=weights)), STUDENT_T * spread * sqrt(1 + 1 / SEGMENTS))


def ttft(requests: Requests) -> Estimate:
    """Return the mean TTFT with the margin for the next part [s]."""
    return forecast(requests.ttft_s, np.ones_like(requests.ttft_s))


def attained(requests: Requests) -> Estimate:
    """Return the token-weighted attainment with the margin for the next part.

    Segments that all attain as much, 100 % say, leave room for what few requests cannot show: no miss among n
    of them is likely enough up to a share of RARE / n.
    """
    share = np.divide(
        requests.met_tokens, requests.tokens, out=np.zeros_like(requests.tokens), where=requests.tokens > 0
    )
    found = forecast(share, requests.tokens)
    weighed_as = requests.tokens.sum() ** 2 / (requests.tokens**2).sum()
    return found._replace(margin=max(found.margin, RARE / float(weighed_as)))


def difference(one: Requests, other: Requests) -> Estimate:
    """Return how much less the mean TTFT of *one* is than that of *other*, on the same requests [s]."""
    saved = other.ttft_s - one.ttft_s
    means = _segment_means(saved, np.ones_like(saved))
    return Estimate(float(saved.mean()), STUDENT_T * float(np.std(means, ddof=1)) / sqrt(SEGMENTS))


def _segment_means(values: Floats, weights: Floats) -> Sequence[float]:
    parts = zip(np.array_split(values, SEGMENTS), np.array_split(weights, SEGMENTS), strict=True)
    return [float(np.average(part, weights=weight)) for part, weight in parts]
