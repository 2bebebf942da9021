"""Fitting Eq. 2: known coefficients are found again, and the stated error is the error."""

import pytest

from vertumnus.domain.prefill_time import Coefficients, PrefillTimeModel
from vertumnus.domain.units import SECOND
from vertumnus.live.fit import TimedPrefill, fit_prefill_time

TRUTH = Coefficients(4e-3, 2e-5, 1e-6, 8e-5, 2e-8, 3e-3)
SIZES = [(64, 0), (256, 0), (1_024, 0), (2_048, 0), (256, 1_024), (1_024, 1_024), (64, 4_096)]
DEGREES = (1, 2, 4)


def exact_points() -> list[TimedPrefill]:
    """Prefill times that follow `TRUTH` to the nanosecond."""
    model = PrefillTimeModel.of(TRUTH, DEGREES)
    return [TimedPrefill(c, r, p, model.predict(c, r, p) / SECOND) for c in DEGREES for r, p in SIZES]


def test_known_coefficients_are_found_again() -> None:
    """On times that follow the formula every coefficient comes back, the error being rounding."""
    fit = fit_prefill_time(exact_points())
    for field in TRUTH.__struct_fields__:
        assert getattr(fit.coefficients, field) == pytest.approx(getattr(TRUTH, field), rel=1e-3), field
    assert fit.mean_error < 1e-6


def test_error_is_that_of_the_worst_points() -> None:
    """One time of 21 that is twice the formula's shows in the mean and leaves the P90 small."""
    first, *others = exact_points()
    fit = fit_prefill_time([first._replace(seconds=2 * first.seconds), *others])
    assert 0.01 < fit.mean_error < 0.2
    assert fit.p90_error > fit.mean_error


def test_one_degree_is_enough() -> None:
    """With a single degree the terms that it cannot tell apart still predict what was measured."""
    points = [point for point in exact_points() if point.degree == 2]
    fit = fit_prefill_time(points)
    model = PrefillTimeModel.of(fit.coefficients, (2,))
    for point in points:
        assert model.predict(2, point.uncached, point.cached) / SECOND == pytest.approx(
            point.seconds, rel=1e-6
        )


def test_nothing_to_fit() -> None:
    """No points, or one that took no time, cannot be fitted."""
    for points in ([], [TimedPrefill(1, 64, 0, 0.0)]):
        with pytest.raises(ValueError, match="at least one point"):
            fit_prefill_time(points)
