"""J of sec. 5.3 and the baselines' costs over offers made by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.policy.config import (
    CacheConfig,
    HomoPolicy,
    LeastLoadedPolicy,
    PaperPolicy,
    RoundRobinPolicy,
    StaticPolicy,
)
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.placement import Offer, cheapest
from vertumnus.policy.policies.rules import cost_rule

QUAD, PAIR, SINGLE = GROUPS = (CpGroup(0, 4), CpGroup(4, 2), CpGroup(6, 1))
OFFERS = (Offer(QUAD, 0, 10, 100, 60), Offer(PAIR, 16, 40, 120, 20), Offer(SINGLE, 0, 0, 180, 0))
SHORT, LONG = a_request(0, input_tokens=40), a_request(1, input_tokens=4_000)


def chosen(policy, offers=OFFERS, request=SHORT) -> CpGroup:
    """Return the worker that *policy* takes."""
    return offers[cheapest(offers, cost_rule(policy, Ledger(GROUPS))(request, offers))].worker


@pytest.mark.parametrize(
    ("beta", "weight", "costs"),
    [
        (1.0, 0.0, [110, 160, 180]),
        (1.0, 0.5, [140, 170, 180]),
        (2.0, 0.5, [240, 290, 360]),
        (1.5, 2.0, [280, 260, 270]),
    ],
)
def test_published_cost_by_hand(beta: float, weight: float, costs: list[int]) -> None:
    """J = q + beta*s + lambda*(C*s - C_min*E_Cmin): e.g. 10 + 1.5*100 + 2*60 = 280."""
    policy = PaperPolicy(beta=beta, gpu_time_weight=weight)
    assert cost_rule(policy, Ledger(GROUPS))(SHORT, OFFERS) == costs
    assert chosen(policy) == OFFERS[costs.index(min(costs))].worker


def test_negative_extra_gpu_time_is_a_discount() -> None:
    """A degree that needs less GPU time than the smallest would (no published sign rule) is cheaper."""
    policy = PaperPolicy(beta=1.0, gpu_time_weight=0.5)
    assert cost_rule(policy, Ledger(GROUPS))(LONG, (Offer(QUAD, 0, 0, 100, -40),)) == [80]


def test_ties_go_to_the_smaller_degree_then_the_lower_rank() -> None:
    """Equal J: CP1 before CP2 before CP4, and of two CP1 the lower first rank, in any order of offers."""
    offers = [Offer(CpGroup(*place), 0, 0, 7, 0) for place in ((0, 4), (9, 1), (4, 2), (8, 1))]
    assert cheapest(offers, [7, 7, 7, 7]) == 3
    assert cheapest(offers, [7, None, 7, None]) == 2
    assert cheapest(offers[::-1], [7, 7, 7, 7]) == 0
    assert cheapest(offers, [6, 7, 7, 7]) == 0


groups = st.builds(
    lambda place, degree: CpGroup(place * degree, degree), st.integers(0, 5), st.sampled_from([1, 2, 4])
)


@given(st.lists(st.tuples(groups, st.none() | st.integers(0, 3)), max_size=8, unique_by=lambda pair: pair[0]))
def test_cheapest_is_the_least_key(pairs) -> None:
    """The choice is the minimum of (cost, degree, first rank) over those with a cost, else None."""
    offers = [Offer(worker, 0, 0, 0, 0) for worker, _ in pairs]
    place = cheapest(offers, [cost for _, cost in pairs])
    keys = [(cost, worker.degree, worker.first_rank) for worker, cost in pairs if cost is not None]
    if place is None:
        assert keys == []
    else:
        worker, cost = pairs[place]
        assert (cost, worker.degree, worker.first_rank) == min(keys)


def test_homo_adds_wait_and_service() -> None:
    """q + s: 110, 160 and 180, so the first; cache and wait both count."""
    assert cost_rule(HomoPolicy(), Ledger(GROUPS))(SHORT, OFFERS) == [110, 160, 180]
    assert chosen(HomoPolicy()) == QUAD


def test_least_loaded_looks_at_the_queue_only() -> None:
    """The empty queue wins, although its service is the slowest."""
    assert cost_rule(LeastLoadedPolicy(), Ledger(GROUPS))(SHORT, OFFERS) == [10, 40, 0]
    assert chosen(LeastLoadedPolicy()) == SINGLE


@pytest.mark.parametrize(("input_tokens", "worker"), [(1, SINGLE), (100, SINGLE), (101, QUAD), (9_999, QUAD)])
def test_static_splits_by_length(input_tokens: int, worker: CpGroup) -> None:
    """Up to the threshold, itself included, the smallest degree serves, above it the largest."""
    assert (
        chosen(StaticPolicy(length_threshold=100), OFFERS, a_request(0, input_tokens=input_tokens)) == worker
    )


def test_static_takes_the_least_work_of_its_class() -> None:
    """Within a class the least q + s wins; the other class has no cost."""
    offers = (*OFFERS, Offer(CpGroup(7, 1), 0, 90, 60, 0))
    rule = cost_rule(StaticPolicy(length_threshold=100), Ledger(GROUPS))
    assert rule(SHORT, offers) == [None, None, 180, 150]
    assert rule(LONG, offers) == [110, None, None, None]


@pytest.mark.parametrize(("request_", "offers"), [(LONG, OFFERS[2:]), (SHORT, OFFERS[:1])])
def test_static_falls_to_the_other_class(request_, offers) -> None:
    """When no worker of a request's class is eligible, the other class serves it."""
    assert chosen(StaticPolicy(length_threshold=100), offers, request_) == offers[0].worker


def test_round_robin_takes_turns_by_first_rank() -> None:
    """0x4, 4x2, 6x1 and again, whatever their load."""
    rule = cost_rule(RoundRobinPolicy(), Ledger(GROUPS))
    turns = [OFFERS[cheapest(OFFERS, rule(SHORT, OFFERS))].worker for _ in range(5)]
    assert turns == [QUAD, PAIR, SINGLE, QUAD, PAIR]


def test_round_robin_skips_who_is_not_there() -> None:
    """A worker that left misses its turn and gets the next one when it is back."""
    rule = cost_rule(RoundRobinPolicy(), Ledger(GROUPS))
    turns = []
    for offers in (OFFERS, OFFERS[::2], OFFERS, OFFERS[1:], OFFERS):
        turns.append(offers[cheapest(offers, rule(SHORT, offers))].worker)
    assert turns == [QUAD, SINGLE, QUAD, PAIR, SINGLE]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: PaperPolicy(beta=0.5), "beta must be at least 1, got 0.5"),
        (lambda: PaperPolicy(beta=float("nan")), "beta must be at least 1, got nan"),
        (lambda: PaperPolicy(gpu_time_weight=-0.1), "gpu_time_weight must be at least 0, got -0.1"),
        (lambda: StaticPolicy(length_threshold=0), "length_threshold must be at least 1 token, got 0"),
        (lambda: CacheConfig(scan_interval_s=0.0), r"scan_interval_s must be in \[0.001, 1000000\], got 0.0"),
        (lambda: CacheConfig(decay=1.0), r"decay must be in \(0, 1\), got 1.0"),
        (lambda: CacheConfig(decay=0.0), r"decay must be in \(0, 1\), got 0.0"),
        (lambda: CacheConfig(demand_floor=0.0), "demand_floor must be above 0, got 0.0"),
    ],
)
def test_parameters_out_of_range_are_named(make, complaint: str) -> None:
    """Each parameter is refused with its value and bound."""
    with pytest.raises(ValueError, match=complaint):
        make()
