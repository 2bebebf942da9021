"""Capacity of compositions from kappa per degree."""

import pytest

from tests.support.reconfig import SPAN_NS, a_composition
from vertumnus.domain.cluster import Composition
from vertumnus.domain.errors import ConfigError
from vertumnus.policy.reconfig.capacity import Capacity


def test_capacity_by_hand() -> None:
    """Two CP1 at 0.9 and one CP2 at 0.8 carry 1.8 + 0.8 = 2.6 s of work a second, 52 s in 20 s."""
    capacity = Capacity({2: 0.8, 1: 0.9})
    composition = a_composition("0x1", "1x1", "2x2")
    assert capacity.by_degree(composition) == {1: 1.8, 2: 0.8}
    assert capacity.of(composition) == pytest.approx(2.6)
    assert capacity.room(composition, SPAN_NS) == {1: 36e9, 2: 16e9}


def test_nothing_in_service_carries_nothing() -> None:
    """Without workers the capacity is 0, not an error."""
    assert Capacity({1: 1.0}).of(Composition(())) == 0


def test_a_missing_kappa_is_named() -> None:
    """Every degree without kappa has its own line, with what there is."""
    with pytest.raises(ConfigError) as caught:
        Capacity({2: 0.8}).of(a_composition("0x1", "1x1", "2x2", "4x4"))
    assert [problem.split(";")[0] for problem in caught.value.problems] == [
        "profile.capacity.1: missing",
        "profile.capacity.4: missing",
    ]
    assert "found [2]" in caught.value.problems[0]


@pytest.mark.parametrize("value", [0.0, -0.5, float("inf"), float("nan")])
def test_a_kappa_that_is_no_capacity_is_refused(value: float) -> None:
    """Zero, negative and non-finite values are named with degree and bound."""
    with pytest.raises(ConfigError, match=r"profile\.capacity\.4: found .*, must be above 0"):
        Capacity({2: 0.8, 4: value})
