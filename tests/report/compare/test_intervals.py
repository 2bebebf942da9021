"""The interval of a mean paired difference covers what it says it covers."""

import random
from math import exp, log, log1p
from statistics import stdev

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vertumnus.report.compare.intervals import paired_difference, paired_ratio, t_quantile

TABLE = {
    1: 12.706,
    2: 4.303,
    3: 3.182,
    4: 2.776,
    5: 2.571,
    9: 2.262,
    10: 2.228,
    29: 2.045,
    30: 2.042,
    120: 1.980,
}
"""t at 95 %, two-sided, as printed in any table."""

some = st.floats(0.01, 100.0)
values = st.lists(some, min_size=2, max_size=8)
close = st.floats(0.5, 2.0)
pairs_of_values = st.lists(st.tuples(close, close), min_size=3, max_size=8)


@pytest.mark.parametrize(("freedom", "t"), TABLE.items())
def test_t_is_that_of_the_tables(freedom: int, t: float) -> None:
    """Odd and even degrees of freedom, few and many."""
    assert t_quantile(freedom) == pytest.approx(t, abs=5e-4)


def test_t_grows_with_confidence() -> None:
    """50, 90, 99 % at 4 degrees of freedom, from the tables."""
    assert [t_quantile(4, c) for c in (0.5, 0.9, 0.99)] == pytest.approx([0.741, 2.132, 4.604], abs=5e-4)


def test_a_difference_by_hand() -> None:
    """1, 2, 3 less 3, 3, 3: mean -1, s = 1, half a width of 4.303 / sqrt(3) = 2.484: not told apart."""
    found = paired_difference([1.0, 2.0, 3.0], [3.0, 3.0, 3.0])
    assert found is not None
    assert found == pytest.approx((-1.0, -3.484, 1.484), abs=1e-3)
    assert not found.is_apart_from_zero


def test_a_ratio_by_hand() -> None:
    """Halved twice and quartered twice: the geometric mean is a factor of 2 ** -1.5."""
    found = paired_ratio([1.0, 2.0, 1.0, 2.0], [2.0, 4.0, 4.0, 8.0])
    assert found is not None
    half = 3.182 * stdev([1, 1, 2, 2]) / 2
    bounds = [2**-1.5 - 1, 2 ** (-1.5 - half) - 1, 2 ** (-1.5 + half) - 1]
    assert list(found) == pytest.approx(bounds, abs=1e-3)


def test_one_pair_has_no_interval_and_none_no_difference() -> None:
    """Nothing tells how far one difference can be trusted."""
    found = paired_difference([1.0], [2.0])
    assert found is not None
    assert (found.mean, found.low, found.high, found.is_apart_from_zero) == (-1.0, None, None, False)
    assert paired_difference([], []) is None
    assert paired_ratio([], []) is None
    assert paired_ratio([0.0, 1.0], [1.0, 1.0]) is None


@given(pairs_of_values)
def test_exchanging_the_sides_mirrors_the_interval(pairs: list[tuple[float, float]]) -> None:
    """What is better one way is worse by as much the other way; a ratio and its bounds are inverted."""
    ours, theirs = [mine for mine, _ in pairs], [other for _, other in pairs]
    there, back = paired_difference(ours, theirs), paired_difference(theirs, ours)
    assert there is not None and back is not None and there.low is not None and there.high is not None
    assert (back.mean, back.low, back.high) == pytest.approx((-there.mean, -there.high, -there.low), abs=1e-9)
    assert there.low <= there.mean <= there.high
    ratio, inverse = paired_ratio(ours, theirs), paired_ratio(theirs, ours)
    assert ratio is not None and inverse is not None
    assert (1 + ratio.mean) * (1 + inverse.mean) == pytest.approx(1.0)
    assert ratio.low is not None and inverse.high is not None
    assert log1p(ratio.low) == pytest.approx(-log1p(inverse.high), abs=1e-6)


@given(values, st.floats(0.1, 10.0), st.floats(-50.0, 50.0))
def test_a_common_shift_of_both_sides_changes_nothing(ours: list[float], factor: float, shift: float) -> None:
    """Pairing takes out what the seed does to both: the same shift, or the same factor for a ratio."""
    theirs = [factor * value for value in ours]
    assume(stdev(ours) > 1e-3)
    plain = paired_difference(ours, theirs)
    moved = paired_difference([v + shift for v in ours], [v + shift for v in theirs])
    assert moved == pytest.approx(plain, abs=1e-6)
    ratio = paired_ratio(ours, theirs)
    assert ratio is not None
    assert ratio.mean == pytest.approx(1 / factor - 1)


@pytest.mark.parametrize("pairs", [3, 5, 10])
def test_the_interval_covers_the_truth_in_95_of_100(pairs: int) -> None:
    """4,000 experiments whose true difference is -3 under noise that both sides share: 95 +- 1.5 %."""
    draw = random.Random(pairs)
    covered = 0
    for _ in range(4_000):
        common = [draw.gauss(20.0, 8.0) for _ in range(pairs)]
        found = paired_difference(
            [seed - 3.0 + draw.gauss(0.0, 1.0) for seed in common],
            [seed + draw.gauss(0.0, 1.0) for seed in common],
        )
        assert found is not None and found.low is not None and found.high is not None
        covered += found.low <= -3.0 <= found.high
    assert covered / 4_000 == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("pairs", [3, 5, 10])
def test_equals_are_told_apart_in_5_of_100(pairs: int) -> None:
    """Latencies that differ between seeds by a factor and between policies by nothing but noise."""
    draw = random.Random(100 + pairs)
    wrong = 0
    for _ in range(4_000):
        common = [exp(draw.gauss(0.0, 0.7)) for _ in range(pairs)]
        sides = [[seed * exp(draw.gauss(0.0, 0.1)) for seed in common] for _ in range(2)]
        found = paired_ratio(*sides)
        assert found is not None
        wrong += found.is_apart_from_zero
    assert wrong / 4_000 == pytest.approx(0.05, abs=0.015)


def test_pairing_is_what_finds_a_small_difference() -> None:
    """A tenth less TTFT under seeds that differ threefold: the ratio is told apart, unpaired it drowns."""
    draw = random.Random(1)
    seeds = [exp(draw.gauss(0.0, 1.0)) for _ in range(5)]
    found = paired_ratio([0.9 * s * exp(draw.gauss(0.0, 0.02)) for s in seeds], seeds)
    assert found is not None and found.is_apart_from_zero
    assert found.mean == pytest.approx(-0.1, abs=0.03)
    assert stdev([log(s) for s in seeds]) > 0.5
