"""The three forms of Eq. 2: known coefficients come back, held-out errors are those of points left out."""

import numpy as np
import pytest

from vertumnus.domain.prefill_time import (
    Coefficients,
    DegreeCoefficients,
    PrefillTimeModel,
    attention_work,
)
from vertumnus.domain.profile import FormError
from vertumnus.domain.units import SECOND
from vertumnus.live.fit import TimedPrefill
from vertumnus_profiling.break_even import break_even
from vertumnus_profiling.forms import (
    FORMS,
    RefusedFit,
    fit_forms,
    held_out_errors,
    require_good,
)

PUBLISHED = Coefficients(4e-3, 2e-5, 1e-6, 8e-5, 2e-8)
DOUBLING = Coefficients(4e-3, 2e-5, 1e-6, 8e-5, 2e-8, 3e-3)
OWN = {
    1: DegreeCoefficients(3e-3, 9e-5, 2e-6, 2.1e-8, 1e-3),
    2: DegreeCoefficients(9e-3, 6e-5, 1e-6, 0.9e-8, 4e-3),
    4: DegreeCoefficients(11e-3, 4e-5, 3e-6, 0.7e-8),
}
SIZES = [(r, p) for r in (64, 256, 1_024, 2_048) for p in (0, 512, 4_096)]


def timed(model: PrefillTimeModel) -> list[TimedPrefill]:
    """Every size at every degree of *model*, to the nanosecond."""
    return [TimedPrefill(c, r, p, model.predict(c, r, p) / SECOND) for c in model.degrees for r, p in SIZES]


def same(found: object, truth: object) -> bool:
    """Whether two sets of coefficients agree to a thousandth (times are whole nanoseconds)."""
    names = type(truth).__struct_fields__  # type: ignore[attr-defined]
    pairs = ((getattr(found, name), getattr(truth, name)) for name in names)
    return all(mine == pytest.approx(its, rel=1e-3, abs=1e-12) for mine, its in pairs)


def test_published_coefficients_come_back() -> None:
    """On times without a cost per doubling the published form is exact, seen or unseen."""
    fitted = fit_forms(timed(PrefillTimeModel.of(PUBLISHED, (1, 2, 4))))
    assert same(fitted.published, PUBLISHED)
    assert max(error.p99 for error in fitted.errors) < 1e-5


def test_doubling_coefficients_come_back_and_the_published_form_cannot_follow() -> None:
    """g is found; held-out errors of the published form are then per cents, not rounding."""
    fitted = fit_forms(timed(PrefillTimeModel.of(DOUBLING, (1, 2, 4))))
    assert same(fitted.log2, DOUBLING)
    by_form = {form: [e.mean for e in fitted.errors if e.form == form] for form in FORMS}
    assert max(by_form["log2"]) < 1e-5 and max(by_form["per_degree"]) < 1e-5
    assert max(by_form["published"]) > 0.02


def test_each_degree_s_own_coefficients_come_back() -> None:
    """Degrees that share nothing are found one by one, and predicted by their own alone."""
    truth = PrefillTimeModel.of(PUBLISHED, (1, 2, 4), OWN)
    fitted = fit_forms(timed(truth))
    assert all(same(fitted.per_degree[degree], OWN[degree]) for degree in OWN)
    assert fitted.model("per_degree").predict(2, 777, 64) == pytest.approx(
        truth.predict(2, 777, 64), rel=1e-4
    )
    assert max(fitted.held_out["per_degree"]) < 1e-5 < max(fitted.held_out["log2"])


def test_a_point_is_judged_by_a_fit_that_has_not_seen_it() -> None:
    """A time twice the formula's is off by half where it is left out; fitted to, it would be off by less."""
    points = timed(PrefillTimeModel.of(DOUBLING, (1, 2)))
    wrong = points[5]._replace(seconds=2 * points[5].seconds)
    errors = held_out_errors("per_degree", [*points[:5], wrong, *points[6:]])
    assert errors[5] == pytest.approx(0.5, abs=1e-4)


def test_every_degree_is_spread_over_all_folds() -> None:
    """Leaving one out each time, a point that only its degree could predict is predicted all the same."""
    points = timed(PrefillTimeModel.of(PUBLISHED, (1, 2, 4), OWN))
    assert np.all(held_out_errors("per_degree", points, folds=len(SIZES)) < 1e-5)


def test_errors_are_summed_up_by_degree() -> None:
    """Mean and percentiles are numpy's over the degree's own points."""
    points = timed(PrefillTimeModel.of(DOUBLING, (1, 2)))
    fitted = fit_forms([*points[:-1], points[-1]._replace(seconds=3 * points[-1].seconds)])
    (found,) = (error for error in fitted.errors if (error.form, error.degree) == ("log2", 2))
    of_degree = fitted.held_out["log2"][len(SIZES) :]
    assert (found.points, found.mean) == (len(SIZES), pytest.approx(of_degree.mean()))
    assert [found.p50, found.p90, found.p99] == pytest.approx(np.percentile(of_degree, (50, 90, 99)))


def error(form: str, degree: int, p90: float) -> FormError:
    """A summary that only its P90 matters of."""
    return FormError(form=form, degree=degree, points=9, mean=0.01, p50=0.01, p90=p90, p99=0.9)  # type: ignore[arg-type]


def test_a_fit_above_15_per_cent_is_refused() -> None:
    """15 % passes, more at any one degree does not; forms that no run uses may be as bad as they are."""
    require_good([error("log2", 1, 0.15), error("published", 1, 0.8)], "log2")
    with pytest.raises(
        RefusedFit, match=r"log2 fit is refused: its held-out P90 error is 15\.1% at CP2, allowed 15%"
    ):
        require_good([error("log2", 1, 0.1), error("log2", 2, 0.151)], "log2")


def test_break_even_by_hand() -> None:
    """2 + R and 7 + R/2 ms meet at R = 10; equal is not faster, so the larger degree pays from 11 on."""
    model = PrefillTimeModel.of(
        PUBLISHED,
        (1, 2),
        {1: DegreeCoefficients(2e-3, 1e-3, 0.0, 0.0), 2: DegreeCoefficients(7e-3, 0.5e-3, 0.0, 0.0)},
    )
    assert break_even(model, 2, 1) == 11
    assert break_even(model, 1, 2) is None
    assert break_even(PrefillTimeModel.of(PUBLISHED, (1, 4)), 4, 1) == 1


@pytest.mark.parametrize("degree", [2, 4])
def test_break_even_is_the_last_change_of_sign(degree: int) -> None:
    """One token below it the smaller degree is as fast, from there on never again."""
    model = PrefillTimeModel.of(DOUBLING, (1, degree))
    even = break_even(model, degree, 1)
    assert even is not None and attention_work(even, 0) > 0
    assert model.predict(degree, even - 1, 0) >= model.predict(1, even - 1, 0)
    assert all(model.predict(degree, r, 0) < model.predict(1, r, 0) for r in range(even, even + 2_000, 7))
