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


def test_kappa_between_known_pools_is_a_line_in_one_over_the_root() -> None:
    """kappa(n) = 1 - 0.8 / sqrt(n) known at 4 and 16 workers: 0.6 and 0.8; exact at 1, 9 and 64 too."""
    capacity = Capacity({1: {16: 0.8, 4: 0.6}, 2: 0.5})
    for workers, kappa in ((4, 0.6), (16, 0.8), (9, 1 - 0.8 / 3), (1, 0.2), (64, 0.9)):
        assert capacity.of_worker(1, workers) == pytest.approx(kappa)
    assert capacity.of_worker(2, 1) == capacity.of_worker(2, 64) == 0.5


def test_workers_of_all_degrees_share_the_load() -> None:
    """Two CP1 and two CP2 are four workers: kappa of a pool of four for each."""
    capacity = Capacity({1: {2: 0.4, 4: 0.6}, 2: {2: 0.5, 4: 0.8}})
    assert capacity.by_degree(a_composition("0x1", "1x1", "2x2", "4x2")) == {1: 1.2, 2: 1.6}


def test_several_known_pools_are_joined_piece_by_piece() -> None:
    """Each known number is met exactly, whatever lies beside it."""
    row = {1: 0.2, 4: 0.7, 9: 0.72, 25: 0.9}
    capacity = Capacity({1: row})
    assert {n: capacity.of_worker(1, n) for n in row} == pytest.approx(row)
    assert 0.72 < capacity.of_worker(1, 16) < 0.9 < capacity.of_worker(1, 36)


def test_a_steep_line_never_reaches_zero() -> None:
    """0.1 at 9 and 0.9 at 16 workers would be below 0 at 4: a tenth of the least known it stays."""
    assert Capacity({1: {9: 0.1, 16: 0.9}}).of_worker(1, 4) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, r"profile\.capacity\.4: found no number of workers"),
        ({0: 0.5}, r"profile\.capacity\.4: found a pool of 0 workers"),
        ({2: 0.0}, r"profile\.capacity\.4: found 0.0, must be above 0"),
    ],
)
def test_a_row_without_meaning_is_refused(row: dict[int, float], said: str) -> None:
    """Degree, what was found and the bound."""
    with pytest.raises(ConfigError, match=said):
        Capacity({2: 0.8, 4: row})
