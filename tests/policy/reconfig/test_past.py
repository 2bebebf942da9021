"""Since when demand is what it is: windows alike, changes, and how far back enough requests lie."""

import numpy as np
import pytest

from vertumnus.policy.reconfig.past import Past, differs


def test_a_change_forgets_what_came_before() -> None:
    """480 a window, then 170: the latest window alone is the past, until others like it have come."""
    past = Past(6)
    assert [past.note(count) for count in (480, 470, 500, 170, 180)] == [False, False, False, True, False]
    assert [past.windows_of(needed) for needed in (1, 180, 181, 350, 10_000)] == [1, 1, 2, 2, 2]


def test_the_past_reaches_no_further_than_told() -> None:
    """Three windows at most, two after a change of mind."""
    past = Past(3)
    for _ in range(5):
        past.note(10)
    assert past.windows_of(1_000) == 3
    past.reach(2)
    assert past.windows_of(1_000) == 2


@pytest.mark.parametrize(
    ("latest", "before", "changed"),
    [
        (141, [100], False),  # 41 against 4 * sqrt(141 + 100) = 62
        (164, [100], False),  # 64 against 64.99
        (166, [100], True),  # 66 against 65.2
        (60, [100, 100, 100, 100], False),  # 40 against 4 * sqrt(100 + 25) = 44.7
        (55, [100, 100, 100, 100], True),  # 45
        (0, [0, 0], False),
        (4, [0], False),  # 4 against 8
        (17, [0], True),  # 17 against 16.5
    ],
)
def test_what_chance_does_not_make(latest: int, before: list[int], changed: bool) -> None:
    """Four standard deviations of both counts, by hand."""
    assert differs(latest, before) is changed


@pytest.mark.parametrize("rate", [0.8, 24.0, 170.0, 480.0])
def test_one_rate_hardly_ever_seems_to_change(rate: float) -> None:
    """Of 20,000 windows of Poisson arrivals fewer than one in a thousand is taken for a change."""
    past = Past(6)
    counts = np.random.default_rng(0).poisson(rate, 20_000)
    assert sum(past.note(int(count)) for count in counts) < 20
