"""Copies between workers: pinned at the source, reserved at the destination, released by any end."""

import pytest

from tests.support.builders import a_cluster, a_request
from tests.support.fleet_rig import LEFT, PAIR, RIGHT, FleetRig, assert_settled, kinds
from vertumnus.domain.facts import Evicted, StepStarted, TransferFailed, TransferFinished, TransferStarted
from vertumnus.domain.jobs import CopyDone, CopyJob
from vertumnus.domain.orders import Drain, Prefill, Transfer
from vertumnus.workers.copies import begin_copy, finish_copy

KEYS = (11, 12, 13, 14)


def a_rig(blocks_per_rank: int = 64) -> FleetRig:
    """A fleet whose PAIR holds a prefix of four blocks, block i on rank i mod 2."""
    rig = FleetRig(a_cluster(blocks_per_rank=blocks_per_rank))
    rig.place(a_request(0, input_tokens=64, block_keys=KEYS), PAIR)
    rig.finish_step(PAIR)
    rig.hand_off(0)
    return rig


def a_pull(first_block: int = 0, blocks: int = 4, to=LEFT, for_request: int | None = 1) -> Transfer:
    """Blocks of the prefix from the PAIR to another worker."""
    sources = tuple(block % 2 for block in range(first_block, blocks))
    return Transfer(7, KEYS[:blocks], first_block, sources, to, "pull", for_request)


def copy_of(rig: FleetRig) -> CopyJob:
    return rig.told(CopyJob)[-1]


def a_waiting(rig: FleetRig, request_id: int = 1, input_tokens: int = 70) -> None:
    """A request for the prefix, placed at LEFT behind transfer 7."""
    request = a_request(request_id, input_tokens=input_tokens, block_keys=KEYS)
    rig.fleet._state.requests[request_id] = request
    rig.order(Prefill(request_id, 0, LEFT, 0, (), 1_000, 64, after_transfer=7))


def test_a_copy_counts_when_it_is_confirmed() -> None:
    """Nothing is resident before; then every block is, on the destination's own ranks."""
    rig = a_rig()
    assert kinds(rig.order(a_pull())) == ["TransferStarted"]
    job = copy_of(rig)
    assert (job.worker, job.sources, len(job.moves)) == (LEFT, (PAIR,), 4)
    assert {source // 64 for source, _ in job.moves} == {0, 1}
    assert rig.worker(LEFT).cache.resident == 0 and rig.worker(PAIR).cache.pinned == 4
    (told,) = rig.conclude(CopyDone(rig.now, job.job_id, 64, 9))
    assert told == TransferFinished(told.at, 7, LEFT, 0, (2, 2, 2, 2), 64, 9)
    assert rig.worker(LEFT).cache.leading_blocks(KEYS) == 4
    assert_settled(rig)


def test_the_step_waits_for_its_copy_and_reuses_it() -> None:
    """A request behind the transfer starts at its end, with the blocks as a hit."""
    rig = a_rig()
    rig.order(a_pull())
    a_waiting(rig)
    assert rig.worker(LEFT).step is None
    facts = rig.conclude(CopyDone(rig.now, copy_of(rig).job_id, 64, 9))
    assert kinds(facts) == ["TransferFinished", "StepStarted"]
    started = facts[1]
    assert isinstance(started, StepStarted) and started.items[0].cached_tokens == 64


@pytest.mark.parametrize("others", [0, 1])
def test_a_copy_that_breaks_releases_both_sides(others: int) -> None:
    """The request then computes the blocks, and who waits for nothing runs meanwhile."""
    rig = a_rig()
    rig.order(a_pull())
    a_waiting(rig)
    if others:
        rig.place(a_request(5), LEFT)
        assert rig.step_of(LEFT).works[0].request_id == 5
    facts = rig.break_job(copy_of(rig).job_id)
    assert isinstance(facts[0], TransferFailed) and facts[0].reason == "torn"
    assert rig.worker(PAIR).cache.pinned == 0
    if others:
        rig.finish_step(LEFT)
    assert (rig.step_of(LEFT).works[0].request_id, rig.step_of(LEFT).works[0].cached_tokens) == (1, 0)


def test_without_room_nothing_starts() -> None:
    """A destination full of what is in use: the transfer fails at once and the request computes."""
    rig = a_rig(blocks_per_rank=5)
    rig.place(a_request(5, input_tokens=50), LEFT)  # runs, and holds 4 of 5 slots
    facts = rig.order(a_pull())
    assert kinds(facts) == ["TransferFailed"] and "no room" in facts[0].reason
    assert rig.worker(PAIR).cache.pinned == 0 and not rig.told(CopyJob)


def test_a_copy_makes_room_by_eviction_and_says_so() -> None:
    """Idle blocks of the destination leave when the copy starts."""
    rig = a_rig(blocks_per_rank=5)
    rig.place(a_request(5, input_tokens=48), LEFT)
    rig.finish_step(LEFT)
    rig.hand_off(5)
    (started,) = rig.order(a_pull())
    assert isinstance(started, TransferStarted)
    assert started.evicted == (Evicted(2, (1_005_002,)), Evicted(2, (1_005_001,)))


def test_only_missing_blocks_travel() -> None:
    """What the destination computed meanwhile is not copied again."""
    rig = a_rig()
    rig.place(a_request(5, input_tokens=33, block_keys=KEYS[:2]), LEFT)
    rig.finish_step(LEFT)
    rig.hand_off(5)
    rig.order(a_pull())
    assert len(copy_of(rig).moves) == 2
    (told,) = rig.conclude(CopyDone(rig.now, copy_of(rig).job_id, 32, 9))
    assert isinstance(told, TransferFinished) and (told.first_block, told.owners) == (2, (2, 2))


def test_a_block_computed_during_its_copy_keeps_its_slot() -> None:
    """The copy's own slot is given back; nothing is resident twice."""
    rig = a_rig()
    rig.order(a_pull())
    rig.place(a_request(5, input_tokens=64, block_keys=KEYS), LEFT)
    rig.finish_step(LEFT)
    rig.conclude(CopyDone(rig.now, copy_of(rig).job_id, 64, 9))
    rig.hand_off(5)
    assert rig.worker(LEFT).cache.resident == rig.worker(LEFT).cache.used == 4
    assert_settled(rig)


def test_ancestors_that_are_gone_fail_the_copy() -> None:
    """Blocks without their prefix at the destination would be no hit."""
    rig = a_rig()
    (failed,) = rig.order(a_pull(first_block=2))
    assert isinstance(failed, TransferFailed) and failed.reason == "the blocks before it are gone"


def test_a_source_that_lost_the_blocks_copies_what_is_left() -> None:
    """Evicted from the leaf on: the leading blocks still come."""
    rig = a_rig(blocks_per_rank=4)
    rig.place(a_request(5, input_tokens=96), PAIR)  # 6 of 8 slots: the last two blocks go
    rig.order(a_pull())
    assert len(copy_of(rig).moves) == 2


def test_a_source_that_holds_nothing_any_more_fails_the_copy() -> None:
    """The index was behind: the request computes."""
    (failed,) = a_rig().order(Transfer(8, (99,), 0, (0,), RIGHT, "pull", 6))
    assert isinstance(failed, TransferFailed)
    assert failed.reason == "no block to copy is left at its source"


def test_a_lost_destination_ends_the_copy_and_its_request_goes_back() -> None:
    """Whether the copy was confirmed after the loss or broke with it."""
    for is_confirmed in (True, False):
        rig = a_rig()
        rig.order(a_pull())
        a_waiting(rig)
        job = copy_of(rig)
        assert "RequestsReturned" in kinds(rig.lose_rank(2))
        facts = (
            rig.conclude(CopyDone(rig.now, job.job_id, 64, 9)) if is_confirmed else rig.break_job(job.job_id)
        )
        assert kinds(facts) == ["TransferFailed"]
        assert rig.worker(PAIR).cache.pinned == 0 and rig.worker(LEFT).cache.resident == 0
        assert rig.fleet.books().blocks_in_use == rig.fleet.books().blocks_held


def test_a_lost_source_does_not_spoil_what_arrived() -> None:
    """The copy was confirmed: its blocks count."""
    rig = a_rig()
    rig.order(a_pull())
    rig.lose_rank(1)
    assert kinds(rig.conclude(CopyDone(rig.now, copy_of(rig).job_id, 64, 9))) == ["TransferFinished"]
    assert rig.worker(LEFT).cache.leading_blocks(KEYS) == 4


def test_a_drain_waits_for_the_copies_at_both_ends() -> None:
    """Source and destination are told drained when the copy is over; a new copy there is refused."""
    for worker in (PAIR, LEFT):
        rig = a_rig()
        rig.order(a_pull())
        assert rig.order(Drain(worker)) == []
        facts = rig.conclude(CopyDone(rig.now, copy_of(rig).job_id, 64, 9))
        assert kinds(facts) == ["TransferFinished", "WorkerDrained"]
    (failed,) = rig.order(Transfer(8, KEYS, 4, (), LEFT, "pull", 1))
    assert isinstance(failed, TransferFailed) and failed.reason == "worker 2x1 is draining"


def test_a_copy_that_outlives_the_last_request_is_none_of_its_balance() -> None:
    """Nothing is open, pinned or in use by requests while the copy goes on, nor after it."""
    rig = a_rig()
    rig.order(a_pull(for_request=None))
    for _ in range(2):
        books = rig.fleet.books()
        assert (books.open_requests, books.pinned_blocks) == (0, 0)
        assert books.blocks_in_use == books.blocks_held
        rig.conclude(CopyDone(rig.now, copy_of(rig).job_id, 64, 9))
    assert rig.fleet.books().blocks_held == 8


def test_a_block_that_a_request_and_a_copy_use_is_the_requests() -> None:
    """PAIR's step reads all four blocks while they are copied."""
    rig = a_rig()
    rig.order(a_pull())
    rig.place(a_request(5, input_tokens=70, block_keys=KEYS), PAIR)
    assert rig.fleet.books().pinned_blocks == 4


def test_a_copy_between_stranded_blocks_leaves_the_leaf_oldest() -> None:
    """11 and 13 are here, 12 and 14 come: two evictions take 14 and 13, and two blocks are still a hit."""
    rig = a_rig(blocks_per_rank=4)
    cache = rig.worker(LEFT).cache
    for block in (0, 2):
        cache.install(KEYS[: block + 1], block, cache.reserve(block, 1).slots)
    cache.unpin((KEYS[0], KEYS[2]))
    copy = begin_copy(a_pull(), rig.worker(LEFT), rig.fleet._state.worker_of_rank)
    assert not isinstance(copy, str) and sorted(copy.slots) == [1, 3]
    assert finish_copy(copy) == (2, 2, 2)
    assert cache.leading_blocks(KEYS) == 4
    assert cache.reserve(0, 2).evicted == (Evicted(2, (KEYS[3], KEYS[2])),)
    assert cache.leading_blocks(KEYS) == 2
