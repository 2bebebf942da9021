"""Demand counters: access and missed by degree, decayed lazily (Algorithms 1 and 2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertumnus.policy.prefix.demand import Demand


def test_decay_by_hand() -> None:
    """Three reuses, a scan at decay 1/2, one more: 3/2 + 1; two scans later a quarter of it."""
    demand = Demand(0.5)
    for _ in range(3):
        demand.add_access(7, 2)
    demand.decay()
    demand.add_access(7, 2)
    assert demand.access(7, 2) == 2.5
    demand.decay()
    demand.decay()
    assert demand.access(7, 2) == 0.625


def test_missed_time_decays_too() -> None:
    """80 ns lost, one scan, 10 more: 50 ns, and access is a counter of its own."""
    demand = Demand(0.5)
    demand.add_missed(7, 4, 80)
    demand.decay()
    demand.add_missed(7, 4, 10)
    assert (demand.missed_ns(7, 4), demand.access(7, 4)) == (50.0, 0.0)


def test_degrees_and_blocks_are_counted_apart() -> None:
    """What is reused at one degree says nothing about another degree or block."""
    demand = Demand(0.5)
    demand.add_access(7, 2)
    assert [demand.access(key, degree) for key, degree in ((7, 2), (7, 4), (8, 2))] == [1.0, 0.0, 0.0]
    assert demand.missed_ns(7, 2) == 0.0


@pytest.mark.parametrize(
    ("access", "missed_ns", "below"),
    [(1.5, 6.0, True), (1.0, 6.0, False), (1.5, 5.0, False), (0.5, 1.0, False)],
)
def test_both_demands_must_be_below_their_floors(access: float, missed_ns: float, below: bool) -> None:
    """One reuse and 5 ns missed at different degrees: each alone keeps the block."""
    demand = Demand(0.5)
    demand.add_access(7, 2)
    demand.add_missed(7, 4, 5)
    assert demand.is_below(7, access, missed_ns) is below


def test_forgotten_demand_is_gone() -> None:
    """After forget a block counts from 0, and a block that was never wanted is below any floor."""
    demand = Demand(0.5)
    demand.add_access(7, 2)
    demand.forget(7)
    demand.forget(8)
    assert (len(demand), demand.access(7, 2), demand.is_below(7, 0.01, 1.0)) == (0, 0.0, True)


@given(st.integers(0, 50), st.integers(0, 10**9), st.sampled_from([0.25, 0.5, 0.75]))
def test_scans_to_fade_is_the_first_scan_below_both_floors(
    accesses: int, missed_ns: int, decay: float
) -> None:
    """At the scan that it names the demand is below both floors, and at none before (from the first on)."""
    demand = Demand(decay)
    for _ in range(accesses):
        demand.add_access(7, 2)
    demand.add_missed(7, 4, missed_ns)
    scans = demand.scans_to_fade(7, 0.25, 1_000.0)
    below = []
    for _ in range(scans):
        demand.decay()
        below.append(demand.is_below(7, 0.25, 1_000.0))
    assert below == [False] * (scans - 1) + [True]


@given(
    st.sampled_from([0.25, 0.5, 0.75]),
    st.lists(st.tuples(st.sampled_from(["scan", "access", "missed"]), st.integers(0, 2)), max_size=60),
)
def test_lazy_counters_equal_eager_ones(decay: float, steps: list[tuple[str, int]]) -> None:
    """Scaling a counter when it is next touched gives what scaling all of them at each scan gives."""
    demand = Demand(decay)
    eager = dict.fromkeys(range(3), (0.0, 0.0))
    for action, key in steps:
        access, missed = eager[key]
        if action == "scan":
            demand.decay()
            eager = {key: (access * decay, missed * decay) for key, (access, missed) in eager.items()}
        elif action == "access":
            demand.add_access(key, 1)
            eager[key] = (access + 1, missed)
        else:
            demand.add_missed(key, 1, 1_000)
            eager[key] = (access, missed + 1_000)
    for key, (access, missed) in eager.items():
        assert demand.access(key, 1) == pytest.approx(access)
        assert demand.missed_ns(key, 1) == pytest.approx(missed)
