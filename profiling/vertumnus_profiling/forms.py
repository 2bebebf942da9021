"""Fits of Eq. 2 in its three forms, and how far each is off on points that it has not seen."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from vertumnus.domain.errors import VertumnusError
from vertumnus.domain.prefill_time import Coefficients, DegreeCoefficients, PrefillTimeModel
from vertumnus.domain.profile import Form, FormError
from vertumnus.live.fit import TimedPrefill, fit_degree, fit_prefill_time, relative_errors

FORMS: tuple[Form, ...] = get_args(Form)
FOLDS = 5
"""Each fifth of a degree's points is predicted from the other four."""
MOST_P90 = 0.15
"""A form with a larger held-out P90 error is refused."""


class RefusedFit(VertumnusError):
    """A fit that is too far off to be used."""


class FittedForms(NamedTuple):
    """All three fits of one sweep, with their held-out errors."""

    published: Coefficients
    log2: Coefficients
    per_degree: dict[int, DegreeCoefficients]
    held_out: dict[Form, NDArray[np.float64]]
    """Absolute relative error of each point when it was left out, in the points' order."""
    errors: tuple[FormError, ...]
    """The same in numbers, by form, then degree."""

    def model(self, form: Form) -> PrefillTimeModel:
        """Return E_C(R, P) in *form*."""
        shared = self.published if form == "published" else self.log2
        return PrefillTimeModel.of(shared, self.per_degree, self.per_degree if form == "per_degree" else {})


def fit_forms(points: Sequence[TimedPrefill], folds: int = FOLDS) -> FittedForms:
    """Fit every form to *points*, which have at least two of each degree."""
    held_out = {form: held_out_errors(form, points, folds) for form in FORMS}
    return FittedForms(
        published=fit_prefill_time(points, doublings=False).coefficients,
        log2=fit_prefill_time(points).coefficients,
        per_degree=_per_degree(points),
        held_out=held_out,
        errors=tuple(_summaries(points, held_out)),
    )


def held_out_errors(form: Form, points: Sequence[TimedPrefill], folds: int = FOLDS) -> NDArray[np.float64]:
    """Return each point's absolute relative error under a fit to the other folds; shape (points,)."""
    fold_of = _folds(points, folds)
    errors = np.empty(len(points))
    for fold in np.unique(fold_of):
        rest = [point for point, its in zip(points, fold_of, strict=True) if its != fold]
        left_out = [point for point, its in zip(points, fold_of, strict=True) if its == fold]
        errors[fold_of == fold] = relative_errors(_fitted(form, rest), left_out)
    return errors


def require_good(errors: Iterable[FormError], form: Form) -> None:
    """Raise RefusedFit when *form* is off by more than `MOST_P90` at some degree."""
    bad = [error for error in errors if error.form == form and error.p90 > MOST_P90]
    if bad:
        told = ", ".join(f"{error.p90:.1%} at CP{error.degree}" for error in bad)
        raise RefusedFit(
            f"the {form} fit is refused: its held-out P90 error is {told}, allowed {MOST_P90:.0%}"
        )


def _fitted(form: Form, points: Sequence[TimedPrefill]) -> PrefillTimeModel:
    degrees = {point.degree for point in points}
    shared = fit_prefill_time(points, doublings=form != "published").coefficients
    return PrefillTimeModel.of(shared, degrees, _per_degree(points) if form == "per_degree" else {})


def _per_degree(points: Sequence[TimedPrefill]) -> dict[int, DegreeCoefficients]:
    degrees = sorted({point.degree for point in points})
    return {degree: fit_degree([p for p in points if p.degree == degree]) for degree in degrees}


def _folds(points: Sequence[TimedPrefill], folds: int) -> NDArray[np.int64]:
    """Return the fold of each point; every degree is spread over all folds, in an order of its own."""
    fold_of = np.empty(len(points), dtype=np.int64)
    degrees = np.array([point.degree for point in points])
    for degree in sorted(set(degrees.tolist())):
        places = np.flatnonzero(degrees == degree)
        shuffled = np.random.default_rng(degree).permutation(places)
        fold_of[shuffled] = np.arange(len(places)) % folds
    return fold_of


def _summaries(
    points: Sequence[TimedPrefill], held_out: dict[Form, NDArray[np.float64]]
) -> Iterable[FormError]:
    degrees = np.array([point.degree for point in points])
    for form, errors in held_out.items():
        for degree in sorted(set(degrees.tolist())):
            of_degree = errors[degrees == degree]
            p50, p90, p99 = (float(value) for value in np.percentile(of_degree, (50, 90, 99)))
            yield FormError(
                form=form,
                degree=degree,
                points=len(of_degree),
                mean=float(of_degree.mean()),
                p50=p50,
                p90=p90,
                p99=p99,
            )
