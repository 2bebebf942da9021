"""A prefill rank's part in a copy between prefill ranks: out of the others' maps, or by messages.

It runs in the transfer thread, beside the steps: source blocks are pinned and destination slots belong
to nobody until the copy is confirmed, so that a step reads and writes other slots.
"""

import time
from collections.abc import Iterator, Mapping, Sequence

import torch.distributed as dist
from torch import Tensor

from vertumnus.domain.units import Rank, SlotId
from vertumnus.live.device import wait_for_stream
from vertumnus.live.kv_store import KvStore
from vertumnus.live.messages import Copied, Copy, Peer
from vertumnus.live.pairs import Pair, PairGroups
from vertumnus.live.transfer import SharedBlocks


class SharedCopies:
    """Copies into this rank's store out of the maps of all ranks."""

    def __init__(self, store: KvStore, maps: SharedBlocks, blocks_per_rank: int) -> None:
        self._store = store
        self._maps = maps
        self._blocks_per_rank = blocks_per_rank

    def copy(self, order: Copy) -> Copied:
        """Copy every block of *order*, all of which end here."""
        started = time.perf_counter_ns()
        blocks = self._maps.take(order.job_id, [source for source, _ in order.moves])
        for block_LBW, (_, destination) in zip(blocks, order.moves, strict=True):
            self._store.block(destination % self._blocks_per_rank).copy_(block_LBW)
        return Copied(order.job_id, time.perf_counter_ns() - started)


class PairwiseCopies:
    """Exchanges blocks with each rank at the other end of a move."""

    def __init__(self, rank: Rank, store: KvStore, blocks_per_rank: int, pairs: PairGroups) -> None:
        self._rank = rank
        self._store = store
        self._blocks_per_rank = blocks_per_rank
        self._pairs = pairs

    def copy(self, order: Copy) -> Copied | None:
        """Send and receive this rank's share of *order*; confirm when blocks end here.

        Raises RuntimeError when a pair broke; nothing is written any more then.
        """
        # by rising rank, so that nobody waits in a circle where groups are made anew
        pairs = {other: self._pairs.of(Peer("prefill", other), turn) for other, turn in order.peers}
        started = time.perf_counter_ns()
        posted = {other: self._exchange(other, pair, order) for other, pair in pairs.items()}
        for source, destination in self._between(order, self._rank, self._rank):
            destination.copy_(source)
        _finish_each(pairs, posted)
        wait_for_stream(self._store.device)
        takes = any(self._owner(destination) == self._rank for _, destination in order.moves)
        return Copied(order.job_id, time.perf_counter_ns() - started) if takes else None

    def _exchange(self, other: Rank, pair: Pair, order: Copy) -> list[dist.Work]:
        sends = [source for source, _ in self._between(order, self._rank, other)]
        receives = [destination for _, destination in self._between(order, other, self._rank)]
        return pair.post_exchange(sends, receives)

    def _between(self, order: Copy, source: Rank, destination: Rank) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield this rank's view of the blocks that go from *source* to *destination*, in order."""
        for move in order.moves:
            if tuple(map(self._owner, move)) == (source, destination):
                yield self._block(move[0]), self._block(move[1])

    def _block(self, slot: SlotId) -> Tensor:
        return self._store.block(slot % self._blocks_per_rank)

    def _owner(self, slot: SlotId) -> Rank:
        return slot // self._blocks_per_rank


def _finish_each(pairs: Mapping[Rank, Pair], posted: Mapping[Rank, Sequence[dist.Work]]) -> None:
    """Wait for every pair, also after one broke: what is still on its way must not arrive later."""
    failures = []
    for other, works in posted.items():
        try:
            pairs[other].finish(works, f"with prefill rank {other}")
        except RuntimeError as error:
            failures.append(str(error))
    if failures:
        raise RuntimeError("; ".join(failures))
