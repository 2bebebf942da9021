"""Why a worker won: the sentence names the terms that decided, under every policy."""

import pytest

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import SECOND, Nanoseconds
from vertumnus.policy.config import PolicyConfig
from vertumnus.policy.placement import Decision, Offer, cheapest
from vertumnus.policy.policies.lmetric import LMetricPolicy
from vertumnus.policy.policies.paper import PaperPolicy, PublishedCosts
from vertumnus.policy.policies.simple import LeastLoadedPolicy, RoundRobinPolicy
from vertumnus.policy.policies.static import StaticPolicy
from vertumnus.policy.policies.vertumnus import ExternalityCosts, VertumnusPolicy
from vertumnus.policy.policies.why import charged_terms, legend, runner_up, why

MILLISECOND = SECOND // 1000


def an_offer(worker: str, wait: float, service: float, extra: float = 0, cached: int = 0, others: int = 0):
    """Return an offer of *worker*, "4x2", with its times in milliseconds."""
    rank, degree = map(int, worker.split("x"))
    times = (round(each * MILLISECOND) for each in (wait, service, extra, others))
    return Offer(CpGroup(rank, degree), cached, *times)


def a_decision(offers: list[Offer], costs: list[Nanoseconds | None]) -> Decision:
    """Return the decision that the least of *costs* makes."""
    return Decision(0, 0, 0, tuple(offers), tuple(costs), (), cheapest(offers, costs))


def published(*offers: Offer, policy: PaperPolicy | None = None) -> str:
    """Return why the paper's policy places as it does."""
    policy = policy or PaperPolicy()
    costs = PublishedCosts(policy.beta, policy.gpu_time_weight)
    return why(policy, a_decision(list(offers), costs(None, offers)))  # type: ignore[arg-type]


def test_savings_come_first_and_the_cached_tokens_last() -> None:
    """By hand, beta 1.5, lambda 0.1: 10 + 150 + 20 = 180 against 100 + 90 + 0 = 190."""
    told = published(
        an_offer("0x4", 10, 100, 200),
        an_offer("4x2", 100, 60, 0, cached=2048),
        policy=PaperPolicy(beta=1.5, gpu_time_weight=0.1),
    )
    assert told == (
        "0x4 costs least, 10.0 ms less than 4x2: wait 90.0 ms less, prefill 60.0 ms more, "
        "GPU time 20.0 ms more; cached 0 tokens, there 2,048"
    )


@pytest.mark.parametrize(("other", "rule"), [("4x4", "lower first rank"), ("4x2", "smaller degree")])
def test_a_tie_names_the_rule_that_broke_it(other: str, rule: str) -> None:
    """Costs are equal to the nanosecond."""
    told = published(an_offer("0x4", 10, 100), an_offer(other, 20, 90))
    assert "cost the same, the least" in told and told.endswith(f"then the {rule} wins")
    assert told.startswith("4x2" if other == "4x2" else "0x4")


def test_a_difference_below_what_shows_is_not_called_nothing() -> None:
    """One nanosecond is under 0.1 ms."""
    first = an_offer("0x4", 10, 100)
    told = published(first, first._replace(worker=CpGroup(4, 4), queue_ns=first.queue_ns + 1))
    assert told == "0x4 costs least, under 0.1 ms less than 4x4: wait under 0.1 ms less"


def test_who_has_no_rival_is_said_to_have_none() -> None:
    """One candidate, one that the rule allows, and nobody."""
    only = an_offer("0x4", 10, 100)
    assert published(only) == "0x4 was the only worker that could take it"
    static = StaticPolicy(length_threshold=1)
    ruled = a_decision([only, an_offer("4x2", 0, 0)], [only.queue_ns, None])
    assert why(static, ruled) == "0x4 was the only one of 2 candidates that the policy's rule allows"
    assert why(static, a_decision([], [])) == "no worker could take it"


def test_costs_that_are_no_times_are_counts() -> None:
    """The unit is named once; a turn is a turn."""
    offers = [an_offer("0x4", 10, 100), an_offer("4x4", 0, 0)]
    decision = a_decision(offers, [12_000, 15_000])
    assert why(LMetricPolicy(), decision) == "0x4 costs least, 12,000 tokens x requests, 4x4 15,000"
    assert why(RoundRobinPolicy(), a_decision(offers, [1, 0])) == "4x4 was next in turn, 0x4 follows"
    assert "wait 10.0 ms less" in why(
        LeastLoadedPolicy(), a_decision([offers[1], offers[0]], [0, 10 * MILLISECOND])
    )


@pytest.mark.parametrize("policy", [PaperPolicy(), VertumnusPolicy(), VertumnusPolicy(externality=False)])
def test_the_terms_add_up_to_the_cost(policy: PaperPolicy | VertumnusPolicy) -> None:
    """What the sentence tells apart is all that the policy charges; the legend names no other term."""
    offer = an_offer("0x4", 10, 100, 50, others=7)
    rule = ExternalityCosts(policy) if isinstance(policy, VertumnusPolicy) else PublishedCosts(1.0, 0.1)
    assert [sum(charged_terms(policy, offer).values())] == rule(None, [offer])  # type: ignore[arg-type]
    formula = dict(legend(policy))["cost"].partition(";")[0]
    assert len(formula.split(" + ")) == len(charged_terms(policy, offer))


def test_the_next_best_is_chosen_as_the_best_is() -> None:
    """Of equal costs the smaller degree, then the lower rank; those without a cost never."""
    offers = [an_offer("0x4", 0, 0), an_offer("4x4", 0, 0), an_offer("8x2", 0, 0), an_offer("10x2", 0, 0)]
    assert runner_up(a_decision(offers, [1, 2, 2, 2])) == 2
    assert runner_up(a_decision(offers, [1, None, None, None])) is None


def test_every_policy_has_a_legend_of_its_cost() -> None:
    """A column and a meaning each, and the cost among them."""
    policies: list[PolicyConfig] = [LMetricPolicy(), RoundRobinPolicy(), LeastLoadedPolicy(), PaperPolicy()]
    assert all("the least wins" in dict(legend(policy))["cost"] for policy in policies)
    assert "externality" not in dict(legend(PaperPolicy())) and "externality" in dict(
        legend(VertumnusPolicy())
    )
