"""Facts in, orders out: placement, retries, losses, demand and the cases of the field (sec. 5, 7.1)."""

from collections.abc import Callable

import pytest

from tests.support.builders import a_cluster, a_control_plane, a_prefill_time, a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.facts import (
    AnyFact,
    Evicted,
    Installed,
    RankLost,
    RequestArrived,
    RequestCancelled,
    RequestEnded,
    RequestsReturned,
    StepFailed,
    StepFinished,
    StepItem,
    StepStarted,
    TimerFired,
)
from vertumnus.domain.orders import AnyOrder, Cancel, Prefill, Reject, SetTimer
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
)
from vertumnus.policy.placement import Decision

PAIR, LEFT, RIGHT = CpGroup(0, 2), CpGroup(2, 1), CpGroup(3, 1)
PREDICT = a_prefill_time().predict
KEYS = tuple(range(1, 9))
"""A prompt of eight blocks, 128 tokens."""


class Rig:
    """A control plane on `a_cluster`, told facts by hand and audited after each."""

    def __init__(
        self, policy: PolicyConfig | None = None, cluster=None, cache: CacheConfig | None = None
    ) -> None:
        self.decisions: list[Decision] = []
        self.control = a_control_plane(cluster, policy, cache, observe=self.decisions.append)
        self.now = 0

    def tell(self, fact: AnyFact) -> list[AnyOrder]:
        orders = self.control.handle(fact)
        self.control.check()
        return orders

    def arrive(self, request: Request) -> AnyOrder:
        (order,) = self.tell(RequestArrived(self.now, request))
        return order

    def start(self, order: Prefill, cached: int = 0, evicted: tuple[Evicted, ...] = ()) -> None:
        item = StepItem(order.request_id, order.attempt, cached)
        assert self.tell(StepStarted(self.now, order.request_id, order.worker, 0, (item,), evicted)) == []

    def finish(self, order: Prefill, first_block: int = 0, owners: tuple[int, ...] | None = None) -> None:
        installed = Installed(order.request_id, first_block, owners)
        assert self.tell(StepFinished(self.now, order.request_id, order.worker, 7, (installed,))) == []

    def end(self, request_id: int) -> None:
        self.tell(RequestEnded(self.now, request_id, "finished", 4))

    def serve(self, request: Request, cached: int = 0) -> Prefill:
        """Let a request arrive and pass through its step and its end."""
        order = self.arrive(request)
        self.start(order, cached)
        self.finish(order, cached // 16)
        self.end(request.request_id)
        return order

    def seed(self, worker: CpGroup, keys: tuple[int, ...] = KEYS) -> None:
        """Let *worker* alone hold *keys*, each block on rank first + i mod C."""
        self.control.index.install(keys, 0, [worker.first_rank + i % worker.degree for i in range(len(keys))])


def a_long_hit(request_id: int, extra: int = 8) -> Request:
    """A prompt of the eight blocks and some tokens more."""
    return a_request(request_id, input_tokens=128 + extra, block_keys=KEYS)


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


# ---- cases of the field -----------------------------------------------------------------------------


def test_a_hit_is_counted_once_per_request() -> None:
    """A request whose step failed and that hits again elsewhere counts one access a block (case 11)."""
    rig = Rig()
    rig.seed(LEFT)
    rig.seed(RIGHT)
    first = rig.arrive(a_long_hit(0))
    rig.start(first, cached=128)
    rig.tell(StepFailed(1, first.request_id, first.worker, "torn"))
    (second,) = rig.tell(RequestsReturned(1, first.worker, (0,), "torn"))
    rig.start(second, cached=128)
    demand = rig.control.statistics.demand
    assert [demand.access(key, 1) for key in KEYS] == [1.0] * 8


def test_a_full_hit_computes_one_block() -> None:
    """L = 128 with all eight blocks held: P = 112, R = 16 (case 12)."""
    rig = Rig()
    rig.seed(LEFT)
    order = rig.arrive(a_long_hit(0, extra=0))
    assert (order.worker, order.expected_cached, order.service_ns) == (LEFT, 112, PREDICT(1, 16, 112))


def test_a_lost_sole_holder_is_no_candidate() -> None:
    """However much it held, a lost worker is never asked again, and the decision says why (case 13)."""
    rig = Rig(PaperPolicy(beta=9.0))
    rig.seed(LEFT)
    rig.tell(RankLost(0, 2, 0, "killed"))
    order = rig.arrive(a_long_hit(0))
    assert order.worker != LEFT
    assert order.expected_cached == 0
    assert rig.decisions[0].excluded == ((LEFT, "rank 2 is lost: killed"),)


def test_an_idle_holder_is_preferred() -> None:
    """With all queues empty the worker with the prefix serves it, although others tie on everything else."""
    rig = Rig()
    rig.seed(RIGHT)
    assert rig.arrive(a_long_hit(0)).worker == RIGHT


def test_a_hot_prefix_spills_once_the_wait_exceeds_the_saving() -> None:
    """Requests stay with the holder while q + s there is least, then leave it one by one (case 14)."""
    rig = Rig(PaperPolicy(gpu_time_weight=0.0))
    rig.seed(RIGHT)
    hit, miss_single, miss_pair = PREDICT(1, 8, 128), PREDICT(1, 136, 0), PREDICT(2, 136, 0)
    waits = {RIGHT: 0, LEFT: 0, PAIR: 0}
    costs = {RIGHT: hit, LEFT: miss_single, PAIR: miss_pair}
    seen = []
    for number in range(8):
        worker = min(waits, key=lambda w: (waits[w] + costs[w], w.degree, w.first_rank))
        order = rig.arrive(a_long_hit(number))
        assert order.worker == worker
        waits[worker] += costs[worker]
        seen.append(worker)
    assert seen[0] == RIGHT
    assert set(seen) == {RIGHT, LEFT, PAIR}


def finish(rig: Rig, order: Prefill) -> None:
    rig.start(order)
    rig.finish(order)
    rig.end(order.request_id)


def fail(rig: Rig, order: Prefill) -> None:
    rig.start(order)
    rig.tell(StepFailed(1, order.request_id, order.worker, "torn"))
    (again,) = rig.tell(RequestsReturned(1, order.worker, (order.request_id,), "torn"))
    finish(rig, again)


def cancel_in_queue(rig: Rig, order: Prefill) -> None:
    assert rig.tell(RequestCancelled(1, order.request_id, "client")) == [Cancel(order.request_id)]
    rig.tell(RequestEnded(1, order.request_id, "cancelled", 0))


def cancel_while_running(rig: Rig, order: Prefill) -> None:
    rig.start(order)
    rig.tell(RequestCancelled(1, order.request_id, "client"))
    assert rig.control.ledger.total_ns > 0
    rig.finish(order)
    rig.tell(RequestEnded(1, order.request_id, "cancelled", 0))


@pytest.mark.parametrize("end", [finish, fail, cancel_in_queue, cancel_while_running])
def test_every_end_settles_the_ledger(end: Callable[[Rig, Prefill], None]) -> None:
    """After finish, failure and cancel the ledger is exactly 0; work is held until then (case 14)."""
    rig = Rig()
    order = rig.arrive(a_request(0))
    assert rig.control.ledger.total_ns == order.service_ns
    end(rig, order)
    assert rig.control.ledger.total_ns == 0


def test_only_whole_blocks_are_credited() -> None:
    """Half of the ninth block in common is worth nothing (case 15)."""
    rig = Rig()
    rig.seed(LEFT)
    assert rig.arrive(a_request(0, input_tokens=143, block_keys=KEYS)).expected_cached == 128


def test_blocks_count_from_the_report_of_their_step() -> None:
    """Placed and running prompts offer nothing to others before StepFinished says installed (case 21)."""
    rig = Rig(cluster=a_cluster({1: 1}))
    first = rig.arrive(a_long_hit(0))
    rig.start(first)
    assert rig.arrive(a_long_hit(1)).expected_cached == 0
    rig.finish(first)
    assert rig.arrive(a_long_hit(2)).expected_cached == 128


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
    assert rig.control.index.resident() == resident


def test_the_regular_layout_counts_from_the_prompts_first_block() -> None:
    """Blocks 3 .. 7 of a prompt on the pair: ranks 1, 0, 1, 0, 1."""
    rig = Rig(StaticPolicy(length_threshold=1))
    rig.seed(PAIR, KEYS[:3])
    order = rig.arrive(a_long_hit(0))
    rig.start(order, cached=48)
    rig.finish(order, 3)
    assert rig.control.index.resident() == {0: 4, 1: 4}


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
    rest: tuple[object, ...] = (7, ()) if end is StepFinished else ("torn",)
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


def test_a_failed_step_takes_its_worker_out() -> None:
    """Its blocks are forgotten and it is no candidate; the reason is kept for the decisions (sec. 6.2)."""
    rig = Rig(cluster=a_cluster({1: 2}))
    order = rig.arrive(a_request(0))
    rig.seed(order.worker)
    rig.start(order)
    rig.tell(StepFailed(1, order.request_id, order.worker, "torn"))
    (again,) = rig.tell(RequestsReturned(1, order.worker, (0,), "torn"))
    assert again.worker != order.worker
    assert rig.control.index.resident() == {}
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


def test_cancelling_an_unknown_request_is_nothing() -> None:
    """Before its arrival or after its end there is nothing to cancel."""
    rig = Rig()
    assert rig.tell(RequestCancelled(0, 5, "client")) == []
    rig.serve(a_request(5))
    assert rig.tell(RequestCancelled(9, 5, "client")) == []


# ---- demand -----------------------------------------------------------------------------------------


def a_pool_that_prefers_degree_1(policy: PolicyConfig | None = None) -> Rig:
    """Without load every short prompt prefers degree 1: its GPU time is priced high."""
    return Rig(policy or PaperPolicy(gpu_time_weight=5.0))


def test_missed_is_counted_where_the_request_would_rather_be() -> None:
    """Held at degree 2 only, preferred at degree 1: each block misses its benefit there (lines 3-9)."""
    rig = a_pool_that_prefers_degree_1()
    rig.seed(PAIR)
    rig.arrive(a_long_hit(0))
    demand = rig.control.statistics.demand
    benefit = PREDICT(1, 136, 0) - PREDICT(1, 8, 128)
    assert sum(demand.missed_ns(key, 1) for key in KEYS) == benefit
    assert all(demand.missed_ns(key, 2) == 0.0 for key in KEYS)


def test_load_does_not_change_the_preferred_degree() -> None:
    """With both degree-1 workers loaded the pair serves, yet the benefit is missed at degree 1 (sec. 7.1)."""
    rig = a_pool_that_prefers_degree_1()
    rig.seed(PAIR)
    for number, worker in enumerate((LEFT, RIGHT)):
        rig.control.ledger.reserve(100 + number, worker, 10 * SECOND)
    order = rig.control.handle(RequestArrived(0, a_long_hit(0)))[0]
    assert order.worker == PAIR
    assert rig.control.statistics.demand.missed_ns(1, 1) > 0


def test_nothing_is_missed_where_a_copy_exists() -> None:
    """A replica at one worker of the preferred degree is enough: ReplicaCount > 0 (line 5)."""
    rig = a_pool_that_prefers_degree_1()
    rig.seed(LEFT)
    rig.arrive(a_long_hit(0))
    assert len(rig.control.statistics.demand) == 0


def test_a_replica_of_a_part_leaves_the_rest_missed() -> None:
    """Three of eight blocks at the preferred degree: the other five are missed."""
    rig = a_pool_that_prefers_degree_1()
    rig.seed(PAIR)
    rig.seed(RIGHT, KEYS[:3])
    rig.arrive(a_long_hit(0))
    demand = rig.control.statistics.demand
    assert [demand.missed_ns(key, 1) > 0 for key in KEYS] == [False] * 3 + [True] * 5


def test_missed_is_counted_once_per_request() -> None:
    """A retry of the same request misses nothing again (Algorithm 1 is per request)."""
    rig = a_pool_that_prefers_degree_1()
    rig.seed(PAIR)
    order = rig.arrive(a_long_hit(0))
    demand = rig.control.statistics.demand
    before = demand.missed_ns(1, 1)
    rig.tell(RequestsReturned(1, order.worker, (0,), "torn"))
    assert demand.missed_ns(1, 1) == before


def test_baselines_prefer_by_the_published_cost() -> None:
    """Under round robin the preferred degree is that of J without load, not the turn's."""
    rig = Rig(RoundRobinPolicy())
    rig.seed(LEFT)
    assert rig.arrive(a_long_hit(0)).worker == PAIR
    assert len(rig.control.statistics.demand) == 0


def test_access_is_counted_at_the_degree_that_served() -> None:
    """The reused path at degree 2, as the step settled it: three blocks, one access each."""
    rig = Rig(StaticPolicy(length_threshold=1))
    rig.seed(PAIR)
    rig.start(rig.arrive(a_long_hit(0)), cached=48)
    demand = rig.control.statistics.demand
    assert [demand.access(key, 2) for key in KEYS] == [1.0] * 3 + [0.0] * 5


def test_a_scan_decays_and_sets_the_next_from_its_due_time() -> None:
    """A late timer does not shift the scans: the next is due one interval after this one was."""
    rig = Rig(cache=CacheConfig(scan_interval_s=5.0, decay=0.5))
    rig.control.statistics.demand.add_access(1, 2)
    late = TimerFired(6 * SECOND, "scan", 5 * SECOND)
    assert rig.tell(late) == [SetTimer("scan", 10 * SECOND)]
    assert rig.control.statistics.demand.access(1, 2) == 0.5


def test_the_audit_notices_work_that_nobody_releases() -> None:
    """Reserved work without an open request is our bug."""
    rig = Rig()
    rig.control.ledger.reserve(0, LEFT, 5)
    with pytest.raises(InvariantError, match="no request is open and 5 ns are reserved"):
        rig.control.check()
