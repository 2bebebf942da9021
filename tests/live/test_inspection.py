"""Ranks tell what lies in their own slots: equal where a block was copied, whoever asks and however."""

import os

import pytest

from tests.live.test_copies import FIRST, THIRD, a_prefix, moves_to
from tests.support.live_driver import Driver, a_cluster, a_plan, running
from tests.support.rank_processes import freeze, wait_for_end
from vertumnus.domain.cluster import CpGroup
from vertumnus.live.inspection import Inspection
from vertumnus.live.messages import Inspect, Inspected, Peer

pytestmark = pytest.mark.live

LEFT, RIGHT = CpGroup(0, 2), CpGroup(2, 2)


def test_copies_have_the_digest_of_their_source(moving: Driver) -> None:
    """By shared maps and by messages: a copied block is its source's equal, every other block is not."""
    moving.adopt(LEFT, RIGHT)
    step = a_prefix(moving, LEFT, 5)
    moves = moves_to(moving, step, [2, 3])
    moving.finish_copying(moving.copy(RIGHT, moves))
    found = moving.engine.digests([slot for move in moves for slot in move])
    assert [found[source] for source, _ in moves] == [found[to] for _, to in moves]
    assert len(set(found.values())) == len(moves)


def test_what_ranks_tell_meanwhile_is_not_lost(moving: Driver) -> None:
    """A step whose answer comes while the coordinator waits for digests ends as ever."""
    moving.adopt(LEFT, RIGHT)
    slots = a_prefix(moving, LEFT, 3).works[0].slots
    step = moving.step(RIGHT, moving.prompt(60))
    for _ in range(50):
        assert set(moving.engine.digests(slots)) == set(slots)
    moving.finish_step(step)


def test_a_lost_rank_is_left_out() -> None:
    """One that dies while it is asked, and one that is known to be gone, hold up nobody."""
    with running(a_plan(a_cluster({1: 4}))) as driver:
        slots = [a_prefix(driver, worker, 1).works[0].slots[0] for worker in (FIRST, THIRD)]
        victim = driver.engine.pids[0]
        freeze(victim)
        os.kill(victim, 9)
        wait_for_end(victim)
        assert set(driver.engine.digests(slots)) == {slots[1]}
        assert set(driver.engine.digests(slots)) == {slots[1]}


def test_one_question_a_rank() -> None:
    """Slots go to their ranks, digests come back to their slots, in any order of answers."""
    inspection = Inspection([130, 5, 128], blocks_per_rank=128)
    asked = dict(inspection.postings())
    assert asked == {
        Peer("prefill", 1, transfers=True): Inspect((130, 128)),
        Peer("prefill", 0, transfers=True): Inspect((5,)),
    }
    inspection.answered(1, Inspected((b"a", b"b")))
    assert inspection
    inspection.lose(0)
    assert not inspection and inspection.found == {130: b"a", 128: b"b"}
