"""Faults event by event: what becomes of requests that counted on one another, or on what is gone."""

from tests.support.builders import a_cluster, a_request
from tests.support.by_hand import ByHand
from vertumnus.domain.facts import DecodeRankLost, RequestEnded, RequestsReturned, StepStarted
from vertumnus.domain.jobs import JobError, StepDone
from vertumnus.domain.orders import Prefill
from vertumnus.domain.units import SECOND
from vertumnus.policy.config import VertumnusPolicy
from vertumnus.serving.replay import replay_inputs
from vertumnus.workers.handoffs import NO_RANK

MILLISECOND = SECOND // 1_000
KEYS = tuple(range(1, 9))
LONE = a_cluster({1: 1}, blocks_per_rank=200)


def a_queue() -> ByHand:
    """A runs; B, which has half of its prefix, and C, which has all of it, were placed to run after A."""
    rig = ByHand(LONE, VertumnusPolicy())
    rig.arrive(a_request(0, input_tokens=160))
    lengths = {1: (136, KEYS), 2: (140, (*KEYS[:4], 901, 902, 903, 904)), 3: (140, KEYS)}
    for number, (tokens, keys) in lengths.items():
        rig.now_ns = number * MILLISECOND
        rig.arrive(a_request(number, rig.now_ns, tokens, block_keys=keys))
    assert [order.after for order in rig.told(Prefill)] == [(), (), (1,), (1,)]
    rig.now_ns = 30 * MILLISECOND
    rig.take(StepDone(rig.now_ns, rig.step().job_id, 7))
    assert [work.request_id for work in rig.step().works] == [1]
    return rig


def test_requests_that_counted_on_a_failed_step_do_not_wait_for_it() -> None:
    """A fails while B and C wait for it, B starts, A is placed to run after C: C runs, then A; all end."""
    rig = a_queue()
    rig.take(JobError(rig.now_ns, rig.step().job_id, "gloo"))
    assert rig.told(Prefill)[-1].after == (3,), "C will leave all of A's blocks"
    ran = []
    for _ in range(3):
        (work,) = rig.step().works
        ran.append(work.request_id)
        rig.take(StepDone(rig.now_ns, rig.step().job_id, 7))
    assert ran == [2, 3, 1]
    for number in (0, *ran):
        rig.hand_off(number)
    assert sorted(end.request_id for end in rig.told(RequestEnded)) == [0, 1, 2, 3]
    assert replay_inputs(rig.records, *rig.fresh()) is None


def test_without_a_decode_rank_nobody_is_prefilled_any_more() -> None:
    """0 is decoded, 1 runs, 2 and 3 wait when the last rank dies, 4 comes later: only 1's step goes on."""
    rig = a_queue()
    rig.take(DecodeRankLost(rig.now_ns, 0, 0, "killed"))
    rig.arrive(a_request(4, rig.now_ns))
    assert [end.request_id for end in rig.told(RequestEnded)] == [0, 2, 3, 4]
    rig.take(StepDone(rig.now_ns, rig.step().job_id, 7))
    reasons = {end.request_id: end.reason for end in rig.told(RequestEnded) if end.status == "failed"}
    assert {number for number, why in reasons.items() if why.endswith("rank 0 lost: killed")} == {0, 2, 3}
    assert {number for number, why in reasons.items() if why.endswith(NO_RANK)} == {1, 4}
    assert [item.request_id for fact in rig.told(StepStarted) for item in fact.items] == [0, 1]
    assert all(returned.is_final for returned in rig.told(RequestsReturned))
    assert not rig.fleet.is_busy and rig.fleet.open_requests == 0
    assert replay_inputs(rig.records, *rig.fresh()) is None
