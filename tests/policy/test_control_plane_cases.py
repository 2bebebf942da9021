"""The control plane in cases from the field, and the demand that it counts (sec. 7.1)."""

from collections.abc import Callable

import pytest

from tests.support.builders import a_cluster, a_request
from tests.support.control_rig import KEYS, LEFT, PAIR, PREDICT, RIGHT, Rig, a_long_hit
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.facts import (
    RankLost,
    RequestArrived,
    RequestCancelled,
    RequestEnded,
    RequestsReturned,
    StepFailed,
    TimerFired,
)
from vertumnus.domain.orders import Cancel, Prefill, SetTimer
from vertumnus.domain.units import SECOND
from vertumnus.policy.config import (
    CacheConfig,
    PaperPolicy,
    PolicyConfig,
    RoundRobinPolicy,
    StaticPolicy,
)

# ---- cases of the field -----------------------------------------------------------------------------


def test_a_hit_is_counted_once_per_request() -> None:
    """A request whose step failed and that hits again elsewhere counts one access a block (case 11)."""
    rig = Rig()
    rig.seed(LEFT)
    rig.seed(RIGHT)
    first = rig.arrive(a_long_hit(0))
    rig.start(first, cached=128)
    rig.tell(StepFailed(1, first.request_id, first.worker, "torn", True))
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
    rig.tell(StepFailed(1, order.request_id, order.worker, "torn", True))
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
    assert rig.tell(late)[-1] == SetTimer("scan", 10 * SECOND)
    assert rig.control.statistics.demand.access(1, 2) == 0.5


def test_the_audit_notices_work_that_nobody_releases() -> None:
    """Reserved work without an open request is our bug."""
    rig = Rig()
    rig.control.ledger.reserve(0, LEFT, 5)
    with pytest.raises(InvariantError, match="no request is open and 5 ns are reserved"):
        rig.control.check()
