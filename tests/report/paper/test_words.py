"""A statement of the paper beside ours, in words: values, ranges, how far off, whether they agree."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertumnus.report.compare.intervals import Difference
from vertumnus.report.paper.chapter import Claim, Unit, at_most, by, exactly, mean_of
from vertumnus.report.paper.words import difference_text, stated_text, value_text, verdict


@pytest.mark.parametrize(
    ("unit", "paper", "ours", "told"),
    [
        ("x", exactly(2.71), (2.5, 2.4, 2.6), ("2.71x", "2.50x (2.40x to 2.60x)", "-7.7 %", "lower")),
        ("x", exactly(2.71), (2.7, 2.6, 2.8), ("2.71x", "2.70x (2.60x to 2.80x)", "-0.4 %", "agrees")),
        ("x", exactly(2.71), (2.7, 2.69, 2.705), ("2.71x", "2.70x (2.69x to 2.71x)", "-0.4 %", "close")),
        (
            "share",
            exactly(0.99),
            (0.98, 0.9, 1.1),
            ("99.0 %", "98.0 % (90.0 % to 100.0 %)", "-1.0 points", "agrees"),
        ),
        ("share", (0.04, 0.08), (0.05, None, None), ("4.0 % to 8.0 %", "5.0 %", "within", "agrees")),
        (
            "share",
            exactly(0.55),
            (0.6, 0.58, 0.62),
            ("55.0 %", "60.0 % (58.0 % to 62.0 %)", "+5.0 points", "higher"),
        ),
        (
            "change",
            exactly(-0.196),
            (-0.1, -0.2, 0.0),
            ("-19.6 %", "-10.0 % (-20.0 % to +0.0 %)", "+9.6 points", "open"),
        ),
        (
            "change",
            exactly(-0.1),
            (-0.2, -0.3, -0.15),
            (
                "-10.0 %",
                "-20.0 % (-30.0 % to -15.0 %)",
                "-10.0 points",
                "gains more",
            ),
        ),
        (
            "points",
            exactly(0.089),
            (0.03, None, None),
            ("+8.9 points", "+3.0 points", "-5.9 points", "gains less"),
        ),
        ("share", at_most(0.25), (1.3, None, None), ("at most 25.0 %", "130.0 %", "+105.0 points", "higher")),
        ("s", at_most(1.0), (0.02, 0.02, 0.02), ("at most 1 s", "0.02 s", "within", "agrees")),
        ("x", (3.0, inf), (2.0, None, None), ("at least 3.00x", "2.00x", "-33.3 %", "lower")),
        ("requests", exactly(2_369), (2_369, 2_369, 2_369), ("2,369", "2,369", "none", "agrees")),
        ("tokens", exactly(42.76), (42.76, None, None), ("42.76", "42.76", "none", "agrees")),
    ],
)
def test_a_statement_and_ours(
    unit: Unit, paper: tuple[float, float], ours: tuple[float, float, float], told: tuple[str, ...]
) -> None:
    """Ours agrees where its interval, or its value without one, meets the range that is stated."""
    claim = Claim("it", unit, paper, Difference(*ours))
    assert (stated_text(claim), value_text(claim.ours, unit), difference_text(claim), verdict(claim)) == told


def test_without_a_run_nothing_is_said() -> None:
    """No value, no difference, no verdict."""
    claim = Claim("it", "s", exactly(1.0), None)
    assert (value_text(None, "s"), difference_text(claim), verdict(claim)) == ("no run", "", "")


@given(st.lists(st.floats(0.1, 10.0), min_size=2, max_size=6))
def test_a_mean_lies_in_its_interval(values: list[float]) -> None:
    """Over seeds, undefined ones left out; of one seed there is no interval, of none no mean."""
    found = mean_of([None, *values])
    assert found is not None and found.low is not None and found.high is not None
    assert found.mean == pytest.approx(sum(values) / len(values))
    assert found.low <= found.mean + 1e-12 and found.high >= found.mean - 1e-12
    assert mean_of(values[:1]) == Difference(values[0], None, None)
    assert mean_of([None]) is None


def test_rows_in_groups() -> None:
    """By one key or by several, in the order of first sight."""
    rows = [{"a": 2, "b": 1}, {"a": 1, "b": 1}, {"a": 2, "b": 3}]
    assert by(rows, "a") == {2: [rows[0], rows[2]], 1: [rows[1]]}
    assert list(by(rows, "a", "b")) == [(2, 1), (1, 1), (2, 3)]
