"""Eq. 2's coefficients from measured prefill times: non-negative least squares on relative errors.

Relative, since a step of 5 ms and one of 5 s matter alike to a TTFT; non-negative, since no part of a
prefill takes less than no time.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from vertumnus.domain.prefill_time import Coefficients, PrefillTimeModel, attention_work
from vertumnus.domain.units import SECOND, Tokens


class TimedPrefill(NamedTuple):
    """One queue-free prefill as measured."""

    degree: int
    uncached: Tokens
    cached: Tokens
    seconds: float


class Fit(NamedTuple):
    """Fitted coefficients and how far they are from what they were fitted to."""

    coefficients: Coefficients
    mean_error: float
    """Mean absolute relative error, 0.1 is 10 %."""
    p90_error: float
    """90th percentile of the absolute relative errors."""


def fit_prefill_time(points: Sequence[TimedPrefill]) -> Fit:
    """Return the coefficients of Eq. 2, with ``g*log2(C)``, that fit *points* best.

    Raises ValueError without points, or for one that took no time.
    """
    if not points or any(point.seconds <= 0 for point in points):
        raise ValueError("a fit needs at least one point, and each must have taken time")
    rows = np.array([_terms(point) for point in points], dtype=np.float64)
    seconds = np.array([point.seconds for point in points])
    relative = rows / seconds[:, None]
    scale = relative.max(axis=0)  # columns differ by nine orders of magnitude
    scale[scale == 0.0] = 1.0
    solution, _ = nnls(relative / scale, np.ones(len(points)))
    d, a, b, c, alpha, g = (float(value) for value in solution / scale)
    coefficients = Coefficients(d, a, b, c, alpha, g)
    errors = _relative_errors(coefficients, points)
    return Fit(coefficients, float(errors.mean()), float(np.quantile(errors, 0.9)))


def _terms(point: TimedPrefill) -> tuple[float, ...]:
    """Return what d, a, b, c, alpha and g are multiplied with (Eq. 2)."""
    degree, uncached, cached = point.degree, point.uncached, point.cached
    pairs = attention_work(uncached, cached)
    return 1.0, uncached, cached, uncached / degree, pairs / degree, degree.bit_length() - 1


def _relative_errors(coefficients: Coefficients, points: Sequence[TimedPrefill]) -> NDArray[np.float64]:
    model = PrefillTimeModel.of(coefficients, {point.degree for point in points})
    predicted = np.array([model.predict(p.degree, p.uncached, p.cached) / SECOND for p in points])
    errors: NDArray[np.float64] = np.abs(predicted / [point.seconds for point in points] - 1.0)
    return errors
