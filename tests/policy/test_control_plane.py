"""Facts in, orders out: placement, what a step settles, retries (sec. 5)."""

from collections.abc import Callable

import pytest

from tests.support.builders import a_cluster, a_request
from tests.support.control_rig import KEYS, LEFT, PAIR, PREDICT, RIGHT, Rig, a_long_hit
from tests.support.residency import known_by_rank
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import (
    Evicted,
    Installed,
    RankLost,
    RequestCancelled,
    RequestsReturned,
    StepFailed,
    StepFinished,
    StepItem,
    StepStarted,
    TimerFired,
)
from vertumnus.domain.orders import Prefill, Reject, SetTimer
from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND
from vertumnus.policy.config import (
    CacheConfig,
    HomoPolicy,
    LeastLoadedPolicy,
    PaperPolicy,
    PolicyConfig,
    RoundRobinPolicy,
    StaticPolicy,
    VertumnusPolicy,
)

ONE = CpGroup(0, 1)

# ---- placement --------------------------------------------------------------------------------------


def test_the_first_order_sets_the_scan_timer() -> None:
    """Before any fact: a timer one scan interval from the start."""
    assert Rig(cache=CacheConfig(scan_interval_s=5.0)).control.start() == [SetTimer("scan", 5 * SECOND)]


def test_an_arrival_is_placed_with_what_it_was_priced_at() -> None:
    """The order carries P, s and the arrival as the place in line (first come, first served)."""
    rig = Rig()
    rig.seed(LEFT)
    assert rig.arrive(a_request(4, arrival_ns=77, input_tokens=136, block_keys=KEYS)) == Prefill(
        4, 0, LEFT, 77, (), PREDICT(1, 8, 128), 128
    )


def test_costs_are_those_of_section_5_3() -> None:
    """J = q + beta*s + lambda*(C*s - C_min*E_Cmin), with reserved work, for every candidate, by hand."""
    rig = Rig(PaperPolicy(beta=2.0, gpu_time_weight=0.5))
    rig.seed(RIGHT, KEYS[:2])
    first = rig.arrive(a_request(0, input_tokens=500))
    rig.arrive(a_request(1, input_tokens=136, block_keys=KEYS))
    s_pair, s_left, s_right = PREDICT(2, 136, 0), PREDICT(1, 136, 0), PREDICT(1, 104, 32)
    queue = {first.worker: first.service_ns}
    assert list(rig.decisions[1].costs) == [
        queue.get(PAIR, 0) + round(2 * s_pair + 0.5 * (2 * s_pair - PREDICT(1, 136, 0))),
        queue.get(LEFT, 0) + 2 * s_left,
        queue.get(RIGHT, 0) + 2 * s_right,
    ]


def test_reserved_work_is_seen_by_the_next_arrival() -> None:
    """Equal requests at one instant spread: each sees what was reserved before it (sec. 5.2)."""
    rig = Rig(LeastLoadedPolicy())
    assert [rig.arrive(a_request(number)).worker for number in range(3)] == [LEFT, RIGHT, PAIR]


@pytest.mark.parametrize(("estimate", "used"), [("outstanding", 0), ("remaining", 3_000_000)])
def test_the_queue_estimate_is_the_policys(estimate: str, used: int) -> None:
    """3 ms into a step the remaining estimate is 3 ms shorter than the outstanding one."""
    rig = Rig(PaperPolicy(queue_estimate=estimate), a_cluster({1: 1}))
    rig.start(order := rig.arrive(a_request(0)))
    rig.now = 3_000_000
    rig.arrive(a_request(1))
    assert rig.decisions[1].offers[0].queue_ns == order.service_ns - used


@pytest.mark.parametrize(
    ("policy", "composition", "workers"),
    [
        (PaperPolicy(), None, [LEFT, RIGHT, PAIR, LEFT]),
        (HomoPolicy(), {2: 2}, [CpGroup(0, 2), CpGroup(2, 2), CpGroup(0, 2), CpGroup(2, 2)]),
        (StaticPolicy(length_threshold=50), None, [LEFT, RIGHT, LEFT, RIGHT]),
        (StaticPolicy(length_threshold=39), None, [PAIR, PAIR, PAIR, PAIR]),
        (LeastLoadedPolicy(), None, [LEFT, RIGHT, PAIR, PAIR]),
        (RoundRobinPolicy(), None, [PAIR, LEFT, RIGHT, PAIR]),
    ],
)
def test_every_policy_chooses(policy: PolicyConfig, composition, workers: list[CpGroup]) -> None:
    """Four equal prompts of 40 tokens at once, E_1 = 14.408 ms and E_2 = 14.404 ms: who takes which."""
    rig = Rig(policy, a_cluster(composition))
    assert [rig.arrive(a_request(number)).worker for number in range(4)] == workers


def test_static_serves_long_prompts_elsewhere_when_its_class_is_gone() -> None:
    """With the pair out of service its class falls to the degree-1 workers."""
    rig = Rig(StaticPolicy(length_threshold=39))
    rig.tell(RankLost(0, 1, 0, "killed"))
    assert rig.arrive(a_request(0)).worker == LEFT


def test_a_prompt_that_one_class_cannot_hold_goes_to_the_other() -> None:
    """Nine blocks: the degree-1 workers of eight blocks say why not; the pair takes it."""
    rig = Rig(cluster=a_cluster(blocks_per_rank=8))
    assert rig.arrive(a_request(0, input_tokens=129)).worker == PAIR
    assert [excluded.worker for excluded in rig.decisions[0].excluded] == [LEFT, RIGHT]
    assert rig.decisions[0].excluded[0].reason == "holds 8 blocks, the prompt needs 9"


def test_a_prompt_that_nobody_can_hold_is_rejected_with_reasons() -> None:
    """No candidate at the first placement: rejected, naming each worker."""
    rig = Rig(cluster=a_cluster({1: 1}, blocks_per_rank=8))
    order = rig.arrive(a_request(0, input_tokens=129))
    assert order == Reject(
        0, "rejected", "no worker can serve it (worker 0x1: holds 8 blocks, the prompt needs 9)"
    )
    assert rig.control.ledger.total_ns == 0


def test_a_prompt_that_nobody_can_hold_misses_nothing() -> None:
    """Without a candidate there is no preferred degree, although its first blocks are known."""
    rig = Rig(cluster=a_cluster({1: 1}, blocks_per_rank=8))
    rig.seed(CpGroup(0, 1))
    assert isinstance(rig.arrive(a_request(0, input_tokens=144, block_keys=(*KEYS, 9))), Reject)
    assert len(rig.control.statistics.demand) == 0


@pytest.mark.parametrize("tokens", [1, 15])
def test_prompts_without_a_whole_block_are_placed(tokens: int) -> None:
    """L < block: no keys, P = 0, R = L."""
    order = Rig().arrive(a_request(0, input_tokens=tokens))
    assert (order.expected_cached, order.service_ns) == (0, PREDICT(order.worker.degree, tokens, 0))


def test_unknown_content_is_placed_as_uncached() -> None:
    """Without block keys nothing matches and nothing is missed."""
    rig = Rig()
    rig.seed(LEFT)
    order = rig.serve(Request(0, 0, 136, 4, None))
    assert order.expected_cached == 0
    assert len(rig.control.statistics.demand) == 0


# ---- steps ------------------------------------------------------------------------------------------


def test_the_truth_of_the_step_reprices_the_reservation() -> None:
    """Routed as a miss, started as a hit: the ledger holds E with the hit until the step ends."""
    rig = Rig()
    order = rig.arrive(a_long_hit(0))
    rig.start(order, cached=128)
    assert rig.control.ledger.total_ns == PREDICT(order.worker.degree, 8, 128)
    rig.finish(order, 8)
    assert rig.control.ledger.total_ns == 0


def test_a_batch_pays_its_start_up_once_in_the_ledger() -> None:
    """Two prompts in one step reserve the step's time: d is charged once (D5)."""
    rig = Rig(cluster=a_cluster({1: 1}))
    for number in range(2):
        rig.arrive(a_request(number, input_tokens=40))
    group = CpGroup(0, 1)
    rig.tell(StepStarted(0, 9, group, 0, (StepItem(0, 0, 0), StepItem(1, 0, 0)), ()))
    assert rig.control.ledger.total_ns == 2 * PREDICT(1, 40, 0) - 10_000_000
    rig.tell(StepFinished(1, 9, group, 7, (Installed(0, 0, None), Installed(1, 0, None))))
    assert rig.control.ledger.total_ns == 0


@pytest.mark.parametrize(
    ("owners", "resident"), [(None, {0: 4, 1: 4}), ((1, 1, 1, 0, 0, 0, 0, 0), {0: 5, 1: 3})]
)
def test_installed_blocks_are_noted_rank_by_rank(owners, resident: dict[int, int]) -> None:
    """Without owners block i is on rank first + i mod C; told owners are taken as they are (D1)."""
    rig = Rig(StaticPolicy(length_threshold=1))
    order = rig.arrive(a_long_hit(0))
    rig.start(order)
    rig.finish(order, 0, owners)
    assert order.worker == PAIR
    assert known_by_rank(rig.control.index) == resident


def test_the_regular_layout_counts_from_the_prompts_first_block() -> None:
    """Blocks 3 .. 7 of a prompt on the pair: ranks 1, 0, 1, 0, 1."""
    rig = Rig(StaticPolicy(length_threshold=1))
    rig.seed(PAIR, KEYS[:3])
    order = rig.arrive(a_long_hit(0))
    rig.start(order, cached=48)
    rig.finish(order, 3)
    assert known_by_rank(rig.control.index) == {0: 4, 1: 4}


def test_evicted_blocks_are_no_hits_any_more() -> None:
    """What made room for a step is gone from the index as the step starts."""
    rig = Rig(cluster=a_cluster({1: 1}))
    rig.seed(CpGroup(0, 1))
    order = rig.arrive(a_request(0))
    rig.start(order, evicted=(Evicted(0, (8, 7, 6)),))
    assert rig.arrive(a_long_hit(1)).expected_cached == 80


def evict_everything(rig: Rig) -> None:
    rig.start(rig.arrive(a_request(0)), evicted=(Evicted(0, KEYS[::-1]),))


def lose_the_rank(rig: Rig) -> None:
    rig.tell(RankLost(0, 0, 0, "killed"))


@pytest.mark.parametrize("lose", [evict_everything, lose_the_rank])
def test_blocks_that_nobody_holds_or_wants_are_forgotten(lose: Callable[[Rig], None]) -> None:
    """Evicted or lost with the worker, blocks without demand are out of the index by the next scan."""
    rig = Rig(cluster=a_cluster({1: 1}))
    rig.seed(CpGroup(0, 1))
    lose(rig)
    rig.tell(TimerFired(1, "scan", 1))
    assert len(rig.control.index) == 0


@pytest.mark.parametrize("end", [StepFinished, StepFailed])
def test_between_steps_nothing_has_been_used_of_the_queue(end: type) -> None:
    """Once a step is over the remaining estimate is the whole queue, however much later."""
    rig = Rig(cluster=a_cluster({1: 1}))
    order = rig.arrive(a_request(0))
    waiting = rig.arrive(a_request(1))
    rig.start(order)
    rest: tuple[object, ...] = (7, ()) if end is StepFinished else ("torn", False)
    rig.tell(end(5, order.request_id, order.worker, *rest))
    rig.control.ledger.release(0)
    assert list(rig.control.ledger.remaining(SECOND)) == [waiting.service_ns]


def test_a_batch_is_used_up_as_a_whole() -> None:
    """Far into a step of two requests nothing of either remains."""
    rig = Rig(cluster=a_cluster({1: 1}))
    for number in range(2):
        rig.arrive(a_request(number))
    rig.tell(StepStarted(0, 9, CpGroup(0, 1), 0, (StepItem(0, 0, 0), StepItem(1, 0, 0)), ()))
    assert list(rig.control.ledger.remaining(SECOND)) == [0]


def test_a_failed_step_leaves_its_worker_in_service() -> None:
    """Its blocks stay known and the request may come back to it."""
    rig = Rig(cluster=a_cluster({1: 1}))
    order = rig.arrive(a_request(0))
    rig.seed(order.worker)
    rig.start(order)
    rig.tell(StepFailed(1, order.request_id, order.worker, "torn", False))
    (again,) = rig.tell(RequestsReturned(1, order.worker, (0,), "torn"))
    assert (again.worker, again.attempt) == (order.worker, 1)
    assert sum(known_by_rank(rig.control.index).values()) == 8


def test_the_last_failed_step_takes_its_worker_out() -> None:
    """Its blocks are forgotten and it is no candidate; the reason is kept for the decisions (sec. 6.2)."""
    rig = Rig(cluster=a_cluster({1: 2}))
    order = rig.arrive(a_request(0))
    rig.seed(order.worker)
    rig.start(order)
    rig.tell(StepFailed(1, order.request_id, order.worker, "torn", True))
    (again,) = rig.tell(RequestsReturned(1, order.worker, (0,), "torn"))
    assert again.worker != order.worker
    assert known_by_rank(rig.control.index) == {}
    assert rig.decisions[-1].excluded == ((order.worker, "a step failed: torn"),)


def test_the_first_reason_to_be_out_of_service_stays() -> None:
    """A second lost rank of the same worker changes nothing; decisions name the first."""
    rig = Rig()
    rig.tell(RankLost(0, 1, 0, "killed"))
    rig.tell(RankLost(0, 0, 0, "killed later"))
    rig.arrive(a_request(0))
    assert rig.decisions[0].excluded == ((PAIR, "rank 1 is lost: killed"),)


# ---- retries ----------------------------------------------------------------------------------------


def test_a_retry_keeps_its_arrival_and_counts_its_attempt() -> None:
    """Returned requests keep their place by arrival, with attempt + 1, in the order in which they came."""
    rig = Rig()
    for number in range(2):
        rig.arrive(a_request(number, arrival_ns=number))
    rig.now = 500
    orders = rig.tell(RequestsReturned(500, LEFT, (1, 0), "torn"))
    assert [(order.request_id, order.attempt, order.priority) for order in orders] == [(1, 1, 1), (0, 1, 0)]
    assert [decision.attempt for decision in rig.decisions] == [0, 0, 1, 1]


def test_a_request_is_given_up_after_max_attempts() -> None:
    """Two placements are allowed: the second return is its end, as failed, with the last reason."""
    rig = Rig(cluster=a_cluster(max_attempts=2))
    rig.arrive(a_request(0))
    (again,) = rig.tell(RequestsReturned(1, LEFT, (0,), "torn"))
    assert again.attempt == 1
    assert rig.tell(RequestsReturned(2, LEFT, (0,), "broken")) == [
        Reject(0, "failed", "placed 2 times, last returned: broken")
    ]
    assert rig.control.ledger.total_ns == 0


def test_a_retry_without_candidate_has_failed() -> None:
    """Nobody left for a request that had been placed: failed, not rejected."""
    rig = Rig(cluster=a_cluster({1: 1}))
    rig.arrive(a_request(0))
    rig.tell(RankLost(1, 0, 0, "killed"))
    (order,) = rig.tell(RequestsReturned(1, CpGroup(0, 1), (0,), "rank 0 lost: killed"))
    assert (order.status, order.reason) == (
        "failed",
        "no worker can serve it (worker 0x1: rank 0 is lost: killed)",
    )


def test_a_returned_reservation_leaves_its_worker() -> None:
    """While it is placed again, a returned request does not count against the worker that returned it."""
    rig = Rig(cluster=a_cluster({1: 1}))
    rig.arrive(a_request(0))
    rig.tell(RequestsReturned(1, CpGroup(0, 1), (0,), "hand-off torn"))
    assert rig.decisions[1].offers[0].queue_ns == 0


@pytest.mark.parametrize("policy", [PaperPolicy(), VertumnusPolicy(pull=False)])
def test_a_failed_batch_is_released_before_the_first_of_it_is_placed(policy: PolicyConfig) -> None:
    """The first is priced as on an idle worker: no work and no promised block of the other is left there."""
    rig = Rig(policy, a_cluster({1: 1}))
    orders = [rig.arrive(a_long_hit(number)) for number in range(2)]
    rig.tell(StepStarted(0, 1, ONE, 0, tuple(StepItem(each.request_id, 0, 0) for each in orders), ()))
    rig.tell(StepFailed(1, 1, ONE, "torn", False))
    first, _ = rig.tell(RequestsReturned(1, ONE, (0, 1), "torn"))
    assert (first.expected_cached, first.service_ns) == (0, PREDICT(1, 136, 0))
    assert rig.decisions[2].offers[0].queue_ns == 0


def test_cancelling_an_unknown_request_is_nothing() -> None:
    """Before its arrival or after its end there is nothing to cancel."""
    rig = Rig()
    assert rig.tell(RequestCancelled(0, 5, "client")) == []
    rig.serve(a_request(5))
    assert rig.tell(RequestCancelled(9, 5, "client")) == []
