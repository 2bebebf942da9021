"""Exact-key deletion: leaves first, never what is used, newer, or another block's ancestor."""

import pytest

from tests.support.builders import a_cluster, a_request
from tests.support.fleet_rig import LEFT, PAIR, FleetRig, assert_settled, kinds
from vertumnus.domain.facts import DeletionRefused, Evicted, ReplicasDeleted
from vertumnus.domain.jobs import CopyDone, CopyJob
from vertumnus.domain.orders import Drain, Reclaim, Transfer

KEYS = (11, 12, 13, 14)
LATER = 1_000_000


def a_rig() -> FleetRig:
    """A fleet whose PAIR holds a prefix of four blocks, block i on rank i mod 2."""
    rig = FleetRig(a_cluster())
    rig.place(a_request(0, input_tokens=64, block_keys=KEYS), PAIR)
    rig.finish_step(PAIR)
    rig.hand_off(0)
    return rig


def refusals(facts: list) -> dict[int, str]:
    return {fact.key: fact.reason for fact in facts if isinstance(fact, DeletionRefused)}


def test_a_tail_goes_leaf_first() -> None:
    """Blocks 14, then 13, which is a leaf by then: their slots are free, the rest is still a hit."""
    rig = a_rig()
    (told,) = rig.order(Reclaim(3, PAIR, (14, 13), LATER))
    assert told == ReplicasDeleted(told.at, 3, PAIR, (Evicted(0, (13,)), Evicted(1, (14,))))
    cache = rig.worker(PAIR).cache
    assert (cache.leading_blocks(KEYS), cache.used) == (2, 2)
    assert_settled(rig)


def test_an_ancestor_stays_while_a_descendant_is_left() -> None:
    """13 before 14: only 14 goes."""
    rig = a_rig()
    facts = rig.order(Reclaim(3, PAIR, (13, 14, 99), LATER))
    assert refusals(facts) == {13: "descendants remain", 99: "not held"}
    assert facts[-1] == ReplicasDeleted(facts[-1].at, 3, PAIR, (Evicted(1, (14,)),))


def test_a_block_in_use_stays() -> None:
    """A running step reads it, or a copy does."""
    rig = a_rig()
    rig.place(a_request(5, input_tokens=70, block_keys=KEYS), PAIR)
    assert refusals(rig.order(Reclaim(3, PAIR, (14,), LATER))) == {14: "in use"}
    rig.finish_step(PAIR)
    rig.hand_off(5)
    rig.order(Transfer(7, KEYS, 0, (0, 1, 0, 1), LEFT, "intra", None))
    assert refusals(rig.order(Reclaim(4, PAIR, (14,), LATER))) == {14: "in use"}
    rig.conclude(CopyDone(rig.now, rig.told(CopyJob)[-1].job_id, 64, 9))
    assert kinds(rig.order(Reclaim(5, PAIR, (14,), LATER))) == ["ReplicasDeleted"]


def test_a_copy_made_since_is_another_version() -> None:
    """Deleted and computed again: the order that judged the old copy leaves the new one."""
    rig = a_rig()
    judged = rig.now
    rig.order(Reclaim(3, PAIR, (14,), judged))
    rig.place(a_request(5, input_tokens=64, block_keys=KEYS), PAIR)
    rig.finish_step(PAIR)
    rig.hand_off(5)
    assert refusals(rig.order(Reclaim(4, PAIR, (14,), judged))) == {14: "a newer copy"}
    assert kinds(rig.order(Reclaim(5, PAIR, (14,), rig.now))) == ["ReplicasDeleted"]


@pytest.mark.parametrize("state", ["draining", "out of service", "gone"])
def test_only_a_worker_that_serves_deletes(state: str) -> None:
    """Its blocks are about to change hands, or nobody's any more."""
    rig = a_rig()
    worker = PAIR
    if state == "draining":
        rig.order(Drain(PAIR))
    elif state == "out of service":
        rig.lose_rank(0)
    else:
        worker = PAIR.parent
    facts = rig.order(Reclaim(3, worker, (14,), LATER))
    said = "no such worker" if state == "gone" else f"the worker is {state}"
    assert refusals(facts) == {14: said} and len(facts) == 1
