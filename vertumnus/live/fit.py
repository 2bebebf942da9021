"""Eq. 2's coefficients from measured prefill times: non-negative least squares on relative errors.

Relative, since a step of 5 ms and one of 5 s matter alike to a TTFT; non-negative, since no part of a
prefill takes less than no time.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from vertumnus.domain.prefill_time import (
    Coefficients,
    DegreeCoefficients,
    PrefillTimeModel,
    attention_work,
)
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


def fit_prefill_time(points: Sequence[TimedPrefill], *, doublings: bool = True) -> Fit:
    """Return the coefficients of Eq. 2 that fit *points* best, with ``g*log2(C)`` or as published.

    Raises ValueError without points, or for one that took no time.
    """
    terms = [_terms(point) if doublings else _terms(point)[:-1] for point in points]
    coefficients = Coefficients(*_solve(terms, points))
    model = PrefillTimeModel.of(coefficients, {point.degree for point in points})
    errors = relative_errors(model, points)
    return Fit(coefficients, float(errors.mean()), float(np.quantile(errors, 0.9)))


def fit_degree(points: Sequence[TimedPrefill]) -> DegreeCoefficients:
    """Return the coefficients that fit *points* best, which are all of one degree.

    Raises ValueError without points, or for one that took no time.
    """
    terms = [(1.0, p.uncached, p.cached, attention_work(p.uncached, p.cached), p.cached > 0) for p in points]
    return DegreeCoefficients(*_solve(terms, points))


def relative_errors(model: PrefillTimeModel, points: Sequence[TimedPrefill]) -> NDArray[np.float64]:
    """Return how far *model* is off at each point, as a share of the measured time; shape (points,)."""
    predicted = np.array([model.predict(p.degree, p.uncached, p.cached) / SECOND for p in points])
    errors: NDArray[np.float64] = np.abs(predicted / [point.seconds for point in points] - 1.0)
    return errors


def _terms(point: TimedPrefill) -> tuple[float, ...]:
    """Return what d, a, b, c, alpha and g are multiplied with (Eq. 2)."""
    degree, uncached, cached = point.degree, point.uncached, point.cached
    pairs = attention_work(uncached, cached)
    return 1.0, uncached, cached, uncached / degree, pairs / degree, degree.bit_length() - 1


def _solve(terms: Sequence[tuple[float, ...]], points: Sequence[TimedPrefill]) -> list[float]:
    if not points or any(point.seconds <= 0 for point in points):
        raise ValueError("a fit needs at least one point, and each must have taken time")
    seconds = np.array([point.seconds for point in points])
    relative = np.array(terms, dtype=np.float64) / seconds[:, None]
    scale = relative.max(axis=0)  # columns differ by nine orders of magnitude
    scale[scale == 0.0] = 1.0
    solution, _ = nnls(relative / scale, np.ones(len(points)))
    return [float(value) for value in solution / scale]
