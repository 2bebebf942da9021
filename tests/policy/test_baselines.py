"""The baselines after other systems' rules, on loads and prefixes made by hand."""

import pytest

from tests.support.builders import a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.policy.config import (
    CacheFirstPolicy,
    DynamoKvPolicy,
    LMetricPolicy,
    PolicyConfig,
    SglangCacheAwarePolicy,
    VllmDpPolicy,
)
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.placement import Offer, cheapest
from vertumnus.policy.policies.rules import cost_rule

QUAD, PAIR, SINGLE = GROUPS = (CpGroup(0, 4), CpGroup(4, 2), CpGroup(6, 1))
REQUEST = a_request(9, input_tokens=100)


def a_loaded_ledger() -> Ledger:
    """QUAD runs a request of 30 uncached tokens and has one of 50 waiting; PAIR has one of 200 waiting."""
    ledger = Ledger(GROUPS)
    ledger.reserve(0, QUAD, 7, uncached_tokens=30)
    ledger.begin(0, 7)
    ledger.reserve(1, QUAD, 9, uncached_tokens=50)
    ledger.reserve(2, PAIR, 9, uncached_tokens=200)
    return ledger


def offers(*cached: int) -> tuple[Offer, ...]:
    """An offer of each worker with so many cached tokens; q and s rise with the place."""
    return tuple(
        Offer(group, tokens, place, 10 * place, 0)
        for place, (group, tokens) in enumerate(zip(GROUPS, cached, strict=True))
    )


@pytest.mark.parametrize(
    ("policy", "cached", "costs"),
    [
        (CacheFirstPolicy(), (16, 64, 64), [None, 11, 22]),
        (LMetricPolicy(), (96, 0, 0), [(80 + 4) * 3, (200 + 100) * 2, 100]),
        (DynamoKvPolicy(), (96, 0, 0), [80 + 4, 200 + 100, 100]),
        (DynamoKvPolicy(overlap_credit=0.5), (96, 0, 0), [80 + 52, 300, 100]),
        (DynamoKvPolicy(overlap_credit=2.0), (96, 0, 0), [80 + 100 - 192, 300, 100]),
        (VllmDpPolicy(), (96, 0, 0), [4 * 1 + 1, 4, 0]),
    ],
)
def test_costs_by_hand(policy: PolicyConfig, cached: tuple[int, ...], costs: list[int | None]) -> None:
    """Each rule's number for 100 tokens, of which so many are cached at each worker."""
    assert cost_rule(policy, a_loaded_ledger())(REQUEST, offers(*cached)) == costs


def test_a_done_request_is_no_load() -> None:
    """What was released counts neither as a request nor as tokens."""
    ledger = a_loaded_ledger()
    for number in range(3):
        ledger.release(number)
    assert {ledger.load(group) for group in GROUPS} == {(0, 0, 0)}


# ---- sglang_cache_aware -----------------------------------------------------------------------------


class Router:
    """The rule with a ledger that sees its choices."""

    def __init__(self, **parameters) -> None:
        self.ledger = Ledger(GROUPS)
        self.rule = cost_rule(SglangCacheAwarePolicy(**parameters), self.ledger)
        self.placed = 0

    def place(self, *keys: int) -> CpGroup:
        request = a_request(self.placed, input_tokens=len(keys) * 16 + 1, block_keys=keys)
        made = offers(0, 0, 0)
        place = cheapest(made, self.rule(request, made))
        assert place is not None
        self.ledger.reserve(self.placed, made[place].worker, 5)
        self.placed += 1
        return made[place].worker


def test_an_unknown_prefix_goes_to_the_smallest_tree() -> None:
    """Each new prompt goes where the fewest blocks were placed, equal ones to the smaller degree."""
    router = Router()
    assert [router.place(1, 2, 3), router.place(4), router.place(5), router.place(6), router.place(7)] == [
        SINGLE,
        PAIR,
        QUAD,
        PAIR,
        QUAD,
    ]


def test_a_known_prefix_is_followed_above_the_threshold() -> None:
    """Three of four blocks match, then one of four: the second is taken for new."""
    router = Router(cache_threshold=0.5)
    assert router.place(1, 2, 3) == SINGLE
    assert router.place(1, 2, 3, 4) == SINGLE
    assert router.place(1, 7, 8, 9) == PAIR


def test_out_of_balance_the_shortest_queue_wins() -> None:
    """With three requests at one worker and a bound of two, affinity is dropped."""
    router = Router(balance_abs=2, balance_rel=1.0)
    turns = [router.place(1, 2, 3) for _ in range(6)]
    assert turns == [SINGLE, SINGLE, SINGLE, PAIR, QUAD, PAIR]


def test_a_tree_forgets_leaves_first() -> None:
    """A tree of two blocks keeps the root and the newest child."""
    router = Router(tree_blocks=2, cache_threshold=0.4)
    router.place(1, 2, 3)
    assert router.place(1, 2, 9) == SINGLE
    rule = router.rule
    assert list(rule._trees[SINGLE]) == [2, 1]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: DynamoKvPolicy(overlap_credit=-1.0), "overlap_credit must be at least 0, got -1.0"),
        (
            lambda: SglangCacheAwarePolicy(cache_threshold=1.5),
            r"cache_threshold must be in \[0, 1\], got 1.5",
        ),
        (lambda: SglangCacheAwarePolicy(balance_abs=-1), "balance_abs must be at least 0, got -1"),
        (lambda: SglangCacheAwarePolicy(balance_rel=0.5), "balance_rel must be at least 1, got 0.5"),
        (lambda: SglangCacheAwarePolicy(tree_blocks=0), "tree_blocks must be at least 1, got 0"),
    ],
)
def test_parameters_out_of_range_are_named(make, complaint: str) -> None:
    """Each parameter is refused with its value and bound."""
    with pytest.raises(ValueError, match=complaint):
        make()
