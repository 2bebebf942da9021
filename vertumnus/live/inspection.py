"""What lies in the ranks' block slots, told by the ranks themselves: for runs that check memory.

A rank answers beside its steps. Whoever asks must have seen the end of what wrote the slots, and order
nothing that overwrites them before the answer is there.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b

import torch
from torch import Tensor

from vertumnus.domain.units import Rank, SlotId
from vertumnus.live.kv_store import KvStore
from vertumnus.live.messages import Inspect, Inspected, Peer
from vertumnus.live.posting import Posting

DIGEST_BYTES = 16
"""Two blocks that differ have the same digest about never."""


class Inspector:
    """A prefill rank's end: reads its own slots."""

    def __init__(self, store: KvStore, blocks_per_rank: int) -> None:
        self._store = store
        self._blocks_per_rank = blocks_per_rank

    def inspect(self, order: Inspect) -> Inspected:
        """Return the digests of what lies in the slots of *order* now."""
        blocks = (self._store.block(slot % self._blocks_per_rank) for slot in order.slots)
        return Inspected(tuple(map(digest, blocks)))


def digest(block_LBW: Tensor) -> bytes:
    """Return bytes that stand for a block's contents, all layers of it."""
    return blake2b(block_LBW.cpu().view(torch.uint8).numpy().data, digest_size=DIGEST_BYTES).digest()


class Inspection:
    """The coordinator's end: one look at some slots, until every rank has answered or is gone."""

    def __init__(self, slots: Iterable[SlotId], blocks_per_rank: int) -> None:
        self.found: dict[SlotId, bytes] = {}
        """The digest of each slot whose rank has answered."""
        self._asked: dict[Rank, list[SlotId]] = {}
        for slot in slots:
            self._asked.setdefault(slot // blocks_per_rank, []).append(slot)

    def __bool__(self) -> bool:
        """Whether an answer is still to come."""
        return bool(self._asked)

    def postings(self) -> Iterator[Posting]:
        """Yield what each rank is asked."""
        for rank, slots in self._asked.items():
            yield Posting(Peer("prefill", rank, transfers=True), Inspect(tuple(slots)))

    def answered(self, rank: Rank, told: Inspected) -> None:
        """Take a rank's answer."""
        self.found.update(zip(self._asked.pop(rank), told.digests, strict=True))

    def lose(self, rank: Rank) -> None:
        """Expect nothing more of a rank that is gone."""
        self._asked.pop(rank, None)
