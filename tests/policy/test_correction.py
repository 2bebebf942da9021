"""Observed prefill times correct the model, degree by degree, and leave it alone when they agree with it."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import a_prefill_time
from vertumnus.domain.orders import NoteDrift
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.policy.correction import (
    CorrectedPrefillTime,
    Correction,
    CorrectionConfig,
    DegreeWindow,
    _fewest,
)

MODEL = a_prefill_time()
SIZES = [(100, 0), (1_000, 0), (30, 400), (2_000, 500), (9_000, 0), (60, 9_000)]


class Steps:
    """A correction that is told steps which take the model's time times a factor."""

    def __init__(self, **parameters) -> None:
        self.correction = Correction(CorrectionConfig(**parameters), MODEL)
        self.model = CorrectedPrefillTime(MODEL, self.correction)
        self.told: list[NoteDrift] = []
        self.steps = 0

    def take(self, degree: int, factor: float, *sizes: tuple[int, int]) -> None:
        self.steps += 1
        self.correction.begin(self.steps, degree, sizes)
        took = round(sum(MODEL.step_shares(degree, sizes)) * factor)
        self.told += self.correction.end(self.steps, took)

    def error(self, degree: int, factor: float) -> float:
        """The largest relative error of a prediction against the model's time times *factor*."""
        return max(
            abs(self.model.predict(degree, *size) / (MODEL.predict(degree, *size) * factor) - 1)
            for size in SIZES
        )


@given(
    st.lists(st.tuples(st.floats(0.1, 10.0), st.none() | st.integers(0, 2)), min_size=1, max_size=60),
    st.integers(1, 12),
)
def test_medians_are_of_the_last_steps(steps, size: int) -> None:
    """Of however many steps the last ones count, for a bucket as for the degree; medians are numpy's."""
    window = DegreeWindow(size)
    for ratio, bucket in steps:
        window.add(ratio, bucket)
    groups = [(window.all, [ratio for ratio, _ in steps[-size:]])]
    for bucket, ratios in window.buckets.items():
        groups.append((ratios, [ratio for ratio, own in steps[-size:] if own == bucket]))
    for ratios, last in groups:
        assert len(ratios) == len(last)
        assert ratios.minority(1.0) == min(sum(r < 1.0 for r in last), sum(r > 1.0 for r in last))
        if last:
            assert ratios.median == pytest.approx(np.median(last), rel=1e-12)


@pytest.mark.parametrize(("samples", "fewest"), [(0, -1), (4, -1), (5, 0), (8, 0), (9, 1), (12, 2), (32, 10)])
def test_what_chance_explains(samples: int, fewest: int) -> None:
    """Five of five on one side are told from chance, four of four are not; of 32 ten may lie on the other."""
    assert _fewest(samples) == fewest


def test_five_steps_correct_their_degree_and_no_other() -> None:
    """Four steps of 1.3 times the prediction change nothing, the fifth corrects every size at that degree."""
    steps = Steps()
    for number in range(4):
        steps.take(2, 1.3, SIZES[number])
    assert steps.error(2, 1.0) == 0.0
    steps.take(2, 1.3, SIZES[4])
    assert steps.error(2, 1.3) < 1e-4
    assert steps.error(1, 1.0) == steps.error(4, 1.0) == 0.0


def test_a_size_that_behaves_otherwise_has_a_factor_of_its_own() -> None:
    """Long prompts take 1.5 times the prediction, short ones take what is predicted."""
    steps = Steps()
    for _ in range(8):
        steps.take(2, 1.5, (9_000, 0))
        steps.take(2, 1.0, (100, 0))
    predicted = [steps.model.predict(2, *size) / MODEL.predict(2, *size) for size in ((9_000, 0), (100, 0))]
    assert predicted == pytest.approx([1.5, 1.0], rel=1e-4)


def test_times_that_are_the_model_correct_nothing() -> None:
    """A median of exactly 1 is no correction: predictions are the model's own."""
    steps = Steps()
    for _ in range(8):
        steps.take(1, 1.0, (1_000, 0))
    assert not steps.correction.corrects
    assert steps.model.predictor() == MODEL.predict


def test_the_predictor_is_the_prediction_of_the_instant() -> None:
    """Corrected or not, it predicts what the model does now."""
    steps = Steps()
    for factor in (1.3,) * 6:
        predictor = steps.model.predictor()
        assert [predictor(2, *size) for size in SIZES] == [steps.model.predict(2, *size) for size in SIZES]
        steps.take(2, factor, (1_000, 0))
    assert steps.correction.corrects


@pytest.mark.parametrize(("factor", "applied"), [(0.1, 0.5), (0.7, 0.7), (9.0, 2.0)])
def test_factors_are_clamped(factor: float, applied: float) -> None:
    """Whatever is observed, predictions are halved or doubled at most."""
    steps = Steps()
    for _ in range(10):
        steps.take(1, factor, (1_000, 0))
    assert steps.error(1, applied) < 1e-4


def test_a_batch_corrects_its_degree() -> None:
    """Steps of several requests say nothing of one size, yet all of the degree; shares add up to the step."""
    steps = Steps()
    for _ in range(6):
        steps.take(2, 1.2, (100, 0), (1_000, 16))
    assert steps.error(2, 1.2) < 1e-4
    items = [(100, 0), (2_000, 500)]
    shares = steps.model.step_shares(2, items)
    assert sum(shares) == pytest.approx(1.2 * sum(MODEL.step_shares(2, items)), rel=1e-6)


def test_a_failed_step_says_nothing() -> None:
    """A step that was dropped is no sample when its id ends after all."""
    steps = Steps()
    for number in range(9):
        steps.correction.begin(number, 1, [(100, 0)])
        steps.correction.drop(number)
        assert steps.correction.end(number, 10**12) == []
    assert steps.error(1, 1.0) == 0.0


def test_the_alarm_is_raised_and_cleared_once() -> None:
    """Median above 1.25: raised; back within [0.8, 1.25]: cleared; nothing in between."""
    steps = Steps(window=8)
    for factor in (1.3,) * 12 + (1.0,) * 12:
        steps.take(4, factor, (1_000, 0))
    assert [(note.degree, note.is_raised) for note in steps.told] == [(4, True), (4, False)]
    assert steps.told[0].ratio == pytest.approx(1.3, rel=1e-4)


@pytest.mark.parametrize("factor", [0.81, 1.0, 1.24])
def test_no_alarm_within_its_bounds(factor: float) -> None:
    """A correction by less than a quarter alarms nobody."""
    steps = Steps()
    for _ in range(40):
        steps.take(4, factor, (1_000, 0))
    assert steps.told == []


def test_retuning_forgets() -> None:
    """Switched off the model is the profile's again, and switched on it has nothing learnt."""
    steps = Steps()
    for _ in range(9):
        steps.take(2, 1.5, (1_000, 0))
    for enabled in (False, True):
        steps.correction.retune(CorrectionConfig(enabled=enabled))
        assert steps.error(2, 1.0) == 0.0
    steps.correction.retune(CorrectionConfig(enabled=False))
    for _ in range(9):
        steps.take(2, 1.5, (1_000, 0))
    assert steps.error(2, 1.0) == 0.0 and isinstance(steps.model, PrefillTimeModel)


@pytest.mark.parametrize("seed", range(5))
def test_a_drift_is_followed_within_fifty_steps(seed: int) -> None:
    """After 200 steps as predicted, times grow by 1.3 with noise: 50 steps later errors are below 5 %."""
    random, steps = Random(seed), Steps()
    for number in range(250):
        factor = random.lognormvariate(0.0, 0.06) * (1.3 if number >= 200 else 1.0)
        steps.take(2, factor, random.choice(SIZES))
        if number < 200:
            assert steps.error(2, 1.0) < 0.15
    degree_factor = steps.correction.factor(2, 10**6, 0)  # a size that was never seen
    assert degree_factor == pytest.approx(1.3, rel=0.05)
    assert [note.is_raised for note in steps.told] == [True]


def test_noise_alone_hardly_moves_predictions() -> None:
    """Over 2,000 steps of noise the mean factor is 1 within 1 %, and most of the time it is 1 itself."""
    random, steps = Random(3), Steps()
    factors = []
    for _ in range(2_000):
        size = random.choice(SIZES)
        factors.append(steps.correction.factor(2, *size))
        steps.take(2, random.lognormvariate(0.0, 0.06), size)
    assert sum(factors) / len(factors) == pytest.approx(1.0, abs=0.01)
    assert factors.count(1.0) > 0.6 * len(factors)


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"min_samples": 0}, "min_samples and window must be 1 <= min_samples <= window <= 256"),
        ({"window": 4}, "got min_samples 5, window 4"),
        ({"window": 257}, "got min_samples 5, window 257"),
        (
            {"lowest": 0.0},
            "lowest and highest must be 0 < lowest <= 1 <= highest, got lowest 0.0, highest 2.0",
        ),
        ({"highest": 0.9}, "got lowest 0.5, highest 0.9"),
        ({"alarm_below": 1.0}, "alarms must be 0 < alarm_below < 1 < alarm_above, got alarm_below 1.0"),
        ({"alarm_above": float("nan")}, "alarm_above nan"),
    ],
)
def test_parameters_out_of_range_are_named(parameters, complaint: str) -> None:
    """Each is refused with its value and bound."""
    with pytest.raises(ValueError, match=complaint):
        CorrectionConfig(**parameters)
