"""Prefixes that operators copy and delete: what is ordered, what is refused, and why."""

import pytest

from tests.support.control_rig import KEYS, LEFT, PAIR, RIGHT, Desk
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Evicted, ReplicasDeleted, TransferFailed, TransferFinished
from vertumnus.domain.orders import Answer, Reclaim, Transfer

LAST = KEYS[-1]
BRANCH = (*KEYS[:5], 50, 51)
"""Another prompt with the same first five blocks."""


def a_desk(*holders: CpGroup) -> Desk:
    """A desk at a pool where *holders* have the eight blocks."""
    desk = Desk()
    for worker in holders:
        desk.seed(worker)
    return desk


def test_a_copy_brings_what_is_missing_from_who_has_most() -> None:
    """Five of eight blocks are there; the other three come from the whole copy, and count when confirmed."""
    desk = a_desk(PAIR)
    desk.seed(LEFT, KEYS[:5])
    desk.seed(RIGHT, KEYS[:6])
    answer, order = desk.wish("copy", LEFT, value=LAST)
    assert answer == Answer(1, True, "3 of 8 blocks")
    assert order == Transfer(1, KEYS, 5, (1, 0, 1), LEFT, "inter", None, "operator")
    assert desk.refusal("copy", LEFT, value=LAST) == "copy: it is on its way to 2x1 already"
    assert desk.tell(TransferFinished(9, 1, LEFT, 5, (2, 2, 2), 48, 5)) == []
    assert desk.control.index.match(KEYS).held[desk.control.pool.workers[LEFT].place] == 8
    assert desk.refusal("copy", LEFT, value=LAST) == "copy: 2x1 holds all of it"


def test_a_copy_between_equals_is_intra() -> None:
    """Of several sources with the same, one of the destination's degree; a failed copy can be asked again."""
    desk = a_desk(PAIR, LEFT)
    _, order = desk.wish("copy", RIGHT, value=LAST)
    assert (order.reason, set(order.sources)) == ("intra", {2})
    desk.tell(TransferFailed(3, order.transfer_id, RIGHT, "no room at the destination"))
    _, again = desk.wish("copy", RIGHT, value=LAST)
    assert again.transfer_id == order.transfer_id + 1


def test_a_copy_that_cannot_be_is_refused_with_the_reason() -> None:
    """Unknown prefix, unknown or drained worker, one that is too small, nobody with more, no number."""
    desk = a_desk(PAIR)
    assert desk.refusal("copy", LEFT, value=999) == "copy: nobody holds prefix 999 any more"
    assert desk.refusal("copy", CpGroup(0, 4), value=LAST) == "copy: there is no worker 0x4"
    assert desk.refusal("copy", LEFT) == "copy: found None, it takes the number of a prefix's last block"
    assert desk.refusal("copy", LEFT, RIGHT, value=LAST) == "copy: found 2 workers, it takes 1"
    desk.wish("drain", PAIR)
    assert desk.refusal("copy", PAIR, value=LAST) == "copy: 0x2 does not serve: drained by ann"
    why = "copy: no other worker that serves holds more of it than 2x1"
    assert desk.refusal("copy", LEFT, value=LAST) == why
    long = tuple(range(100, 165))
    desk.seed(RIGHT, long)
    assert desk.refusal("copy", LEFT, value=long[-1]) == "copy: 2x1 has 64 blocks, it takes 65"


def test_a_deletion_ends_where_another_prefix_begins() -> None:
    """Leaf first, up to the fifth block, which another prompt goes on from; what is told gone is gone."""
    desk = a_desk(PAIR, LEFT)
    desk.seed(LEFT, BRANCH)
    answer, order = desk.wish("reclaim", LEFT, value=LAST)
    assert (answer.reason, order) == ("3 blocks", Reclaim(1, LEFT, (8, 7, 6), 0, "operator"))
    desk.tell(ReplicasDeleted(2, 1, LEFT, (Evicted(2, (8, 7, 6)),)))
    assert desk.control.index.match(KEYS).held[desk.control.pool.workers[LEFT].place] == 5
    assert desk.control.index.match(BRANCH[:5]).known == 5


def test_a_deletion_ends_where_the_last_copy_begins() -> None:
    """Blocks that nobody else has stay: a split left the other worker with the last two alone."""
    desk = a_desk(LEFT)
    desk.control.index.recompose(desk.control.pool.groups)
    desk.control.index.install(KEYS, 6, [3, 3])
    _, order = desk.wish("reclaim", LEFT, value=LAST)
    assert order.keys == (8, 7)


@pytest.mark.parametrize(
    ("holders", "worker", "key", "why"),
    [
        ((PAIR,), PAIR, LAST, "it is the last copy; eviction takes it when its room is needed"),
        ((PAIR, LEFT), LEFT, KEYS[3], "longer prefixes at 2x1 build on it"),
        ((PAIR, LEFT), RIGHT, LAST, "3x1 does not hold it"),
        ((PAIR, LEFT), LEFT, 999, "nobody holds prefix 999 any more"),
        ((PAIR, LEFT), CpGroup(0, 4), LAST, "there is no worker 0x4"),
    ],
)
def test_a_deletion_that_cannot_be_is_refused(holders, worker, key, why) -> None:
    """The last copy, an inner block, what is not there."""
    assert a_desk(*holders).refusal("reclaim", worker, value=key) == f"reclaim: {why}"
