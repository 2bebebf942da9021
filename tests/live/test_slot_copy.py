"""A rank's part in copies, with threads as ranks: bytes arrive as they were, and broken pairs end in time."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Store

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.jobs import CopyJob
from vertumnus.live import pairs as pairs_module
from vertumnus.live.config import MODEL_PRESETS
from vertumnus.live.copies import CopyBook
from vertumnus.live.groups import join_store, make_group, serve_store
from vertumnus.live.kv_store import KvLayout, KvStore, allocate
from vertumnus.live.messages import Copied, Copy, Peer
from vertumnus.live.pairs import PairGroups
from vertumnus.live.slot_copy import PairwiseCopies, SharedCopies
from vertumnus.live.transfer import SharedBlocks

RANKS, SLOTS, BLOCK_TOKENS, LIMIT_S = 3, 8, 16, 10.0
MISSED_S = 5.0
"""How long a rank waits for a peer that stays away, while those that come may be late on a busy machine."""
CPU = torch.device("cpu")
SWAP = CopyJob(1, CpGroup(0, 2), ((0, 12), (8, 4), (1, 13), (17, 5), (2, 6)), ())
"""Rank 0 to 1 and back, twice and once; rank 2 to 0; and within rank 0. Slots 0 to 7 are rank 0's."""


class Pool(NamedTuple):
    """Three ranks' stores and what carries out their parts."""

    stores: list[KvStore]
    copies: list[Callable[[Copy], Copied | None]]

    def block(self, slot: int) -> torch.Tensor:
        """Return the block in a slot."""
        return self.stores[slot // SLOTS].block(slot % SLOTS)

    def carry_out(self, orders: dict[int, Copy]) -> dict[int, Copied | None]:
        """Have every rank do its part at once."""
        with ThreadPoolExecutor(RANKS) as threads:
            running = {rank: threads.submit(self.copies[rank], order) for rank, order in orders.items()}
            return {rank: future.result() for rank, future in running.items()}


@pytest.fixture(params=["shared", "pairwise"])
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    """Yield three ranks whose stores hold random bytes."""
    generator = torch.Generator().manual_seed(0)
    stores = [
        allocate(KvLayout.of_model(MODEL_PRESETS["nano"]), SLOTS, BLOCK_TOKENS, CPU) for _ in range(RANKS)
    ]
    for slot in range(RANKS * SLOTS):
        stores[slot // SLOTS].block(slot % SLOTS).normal_(generator=generator)
    if request.param == "shared":
        maps = SharedBlocks(stores, SLOTS)
        yield Pool(stores, [SharedCopies(store, maps, SLOTS).copy for store in stores])
        return
    meeting = serve_store()
    pairs = [
        PairGroups(Peer("prefill", rank), join_store(meeting.port, LIMIT_S), CPU, LIMIT_S)
        for rank in range(RANKS)
    ]
    yield Pool(stores, [PairwiseCopies(rank, stores[rank], SLOTS, pairs[rank]).copy for rank in range(RANKS)])


def parts(pool: Pool, job: CopyJob) -> dict[int, Copy]:
    """Return what each rank is told of *job*."""
    by_transfer = isinstance(getattr(pool.copies[0], "__self__", None), PairwiseCopies)
    postings = CopyBook(RANKS, SLOTS, by_transfer=by_transfer).begin(job)
    return {posting.peer.rank: posting.body for posting in postings if isinstance(posting.body, Copy)}


def test_blocks_arrive_as_they_were(pool: Pool) -> None:
    """Crossing moves, a third rank's and one's own: every destination equals its source, bit by bit.

    No other block has changed, and those confirm at whom blocks end.
    """
    before = [pool.block(slot).clone() for slot in range(RANKS * SLOTS)]
    answers = pool.carry_out(parts(pool, SWAP))
    assert {rank for rank, answer in answers.items() if answer is not None} == {0, 1}
    assert all(
        answer is None or (answer.job_id, answer.wire_ns > 0) == (1, True) for answer in answers.values()
    )
    came_from = {destination: source for source, destination in SWAP.moves}
    for slot in range(RANKS * SLOTS):
        assert torch.equal(pool.block(slot), before[came_from.get(slot, slot)]), slot


def test_copies_follow_one_another_on_the_same_pairs(pool: Pool) -> None:
    """A block that wanders from rank to rank and back is still what it was."""
    block = pool.block(0).clone()
    for job_id, move in enumerate([(0, 9), (9, 18), (18, 0)] * 3):
        pool.carry_out(parts(pool, CopyJob(job_id, CpGroup(move[1] // SLOTS, 1), (move,), ())))
        pool.block(move[0]).zero_()
    assert torch.equal(pool.block(0), block)


def test_a_pair_is_made_when_both_ends_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much later one of them has started is not held against the limit on an operation."""
    made: list[str] = []

    def noted(store: Store, prefix: str, *more: Any) -> dist.ProcessGroup:
        made.append(prefix)
        return make_group(store, prefix, *more)

    monkeypatch.setattr(pairs_module, "make_group", noted)
    meeting = serve_store()
    early, late = (
        PairGroups(Peer("prefill", rank), join_store(meeting.port, LIMIT_S), CPU, MISSED_S)
        for rank in range(2)
    )
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(early.connect, [Peer("prefill", 1)])
        meeting.wait(["here/pair/prefill0-prefill1/0"], timedelta(seconds=LIMIT_S))
        assert made == []
        late.connect([Peer("prefill", 0)])
        waiting.result()
    assert made == ["pair/prefill0-prefill1/0"] * 2


def test_a_peer_that_does_not_come_is_named() -> None:
    """The wait ends after the limit with the pair that did not come together; nothing was written."""
    meeting = serve_store()
    store = allocate(KvLayout.of_model(MODEL_PRESETS["nano"]), SLOTS, BLOCK_TOKENS, CPU)
    pairs = PairGroups(Peer("prefill", 0), join_store(meeting.port, LIMIT_S), CPU, timeout_s=0.2)
    with pytest.raises(RuntimeError, match="prefill0-prefill1"):
        PairwiseCopies(0, store, SLOTS, pairs).copy(Copy(1, ((8, 0),), ((1, 0),)))
    assert not store.block(0).any()


def test_one_end_that_never_sends_leaves_the_other_pair_whole() -> None:
    """A pair that times out is named; what came from another rank is there, and nothing follows later."""
    meeting = serve_store()
    stores = [
        allocate(KvLayout.of_model(MODEL_PRESETS["nano"]), SLOTS, BLOCK_TOKENS, CPU) for _ in range(RANKS)
    ]
    stores[2].block(0).fill_(1.0)
    pairs = [
        PairGroups(Peer("prefill", rank), join_store(meeting.port, LIMIT_S), CPU, MISSED_S)
        for rank in range(RANKS)
    ]
    order = Copy(1, ((8, 0), (16, 1)), ((1, 0), (2, 0)))
    with ThreadPoolExecutor(RANKS) as threads:
        taking = threads.submit(PairwiseCopies(0, stores[0], SLOTS, pairs[0]).copy, order)
        silent = threads.submit(pairs[1].of, Peer("prefill", 0), 0)
        giving = threads.submit(
            PairwiseCopies(2, stores[2], SLOTS, pairs[2]).copy, Copy(1, ((16, 1),), ((0, 0),))
        )
        with pytest.raises(RuntimeError, match="with prefill rank 1"):
            taking.result()
        assert giving.result() is None
    assert torch.equal(stores[0].block(1), stores[2].block(0))
    with pytest.raises(RuntimeError):
        silent.result().post_sends([stores[1].block(0)])[0].wait()
    assert not stores[0].block(0).any()
