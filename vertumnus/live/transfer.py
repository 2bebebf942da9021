"""How a prompt's KV reaches a decode rank: through memory that both map, or by messages.

Messages run in a thread with a control stream of its own, so that computing goes on beside them.
The receiving end posts all its receives before it waits; the sending end waits for them.
"""

import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor

from vertumnus.domain.units import JobId, Rank, SlotId
from vertumnus.live.control import ControlLink
from vertumnus.live.device import keep_for_stream, own_stream
from vertumnus.live.groups import brief
from vertumnus.live.kv_store import KvStore
from vertumnus.live.messages import (
    PROTOCOL_VERSION,
    Copy,
    FromRank,
    Inspect,
    Peer,
    Receive,
    Register,
    Send,
    Shutdown,
    TransferDone,
    TransferFailed,
)
from vertumnus.live.pairs import Pair, PairGroups
from vertumnus.live.rank_context import IDLE_MS, RankContext

TransferOrder: TypeAlias = Send | Receive | Copy | Inspect

Ends: TypeAlias = Mapping[type[TransferOrder], Callable[[Any], FromRank | None]]
"""What carries out each kind of order; it raises RuntimeError when a transfer breaks."""


class BlockSource(Protocol):
    """Where a decode rank finds the KV of a prompt that it admits."""

    def take(self, job_id: JobId, slots: Sequence[SlotId]) -> list[Tensor]:
        """Return the prompt's blocks, each [layers, block_tokens, width], to be copied from at once."""

    def drop(self, job_id: JobId) -> None:
        """Forget a prompt that nobody will take."""


class SharedBlocks:
    """The KV maps of all prefill ranks of this host, by rank."""

    def __init__(self, stores: Sequence[KvStore], blocks_per_rank: int) -> None:
        self._stores = stores
        self._blocks_per_rank = blocks_per_rank

    def take(self, job_id: JobId, slots: Sequence[SlotId]) -> list[Tensor]:
        """Return views of the blocks in *slots*."""
        located = (divmod(slot, self._blocks_per_rank) for slot in slots)
        return [self._stores[rank].block(slot) for rank, slot in located]

    def drop(self, job_id: JobId) -> None:
        """Do nothing: the blocks are their owners' to keep."""


class ReceivedBlocks:
    """Blocks that the transfer thread has received and the decode loop has not taken yet."""

    def __init__(self) -> None:
        self._arrived: dict[JobId, list[Tensor]] = {}

    def put(self, job_id: JobId, blocks: list[Tensor]) -> None:
        """Keep a prompt's blocks (a dict's own operations are atomic, so no lock)."""
        self._arrived[job_id] = blocks

    def take(self, job_id: JobId, slots: Sequence[SlotId]) -> list[Tensor]:
        """Hand the blocks out and forget them."""
        blocks = self._arrived.pop(job_id)
        keep_for_stream(blocks)
        return blocks

    def drop(self, job_id: JobId) -> None:
        """Forget the blocks if they have arrived."""
        self._arrived.pop(job_id, None)


class Sender:
    """A prefill rank's end: sends blocks out of its store."""

    def __init__(self, store: KvStore, blocks_per_rank: int, pairs: PairGroups) -> None:
        self._store = store
        self._blocks_per_rank = blocks_per_rank
        self._pairs = pairs

    def send(self, order: Send) -> None:
        """Send the slots of *order* and wait until they have left. Raises RuntimeError when it breaks."""
        decode_rank = Peer("decode", order.decode_rank)
        pair = self._pairs.of(decode_rank, order.generation)
        blocks = [self._store.block(slot % self._blocks_per_rank) for slot in order.slots]
        pair.finish(pair.post_sends(blocks), f"to {decode_rank}")  # the receiving end says that it is done


class Receiver:
    """A decode rank's end: receives a prompt's blocks from every owner into memory of its own."""

    def __init__(
        self,
        new_block: Callable[[], Tensor],
        blocks_per_rank: int,
        pairs: PairGroups,
        arrived: ReceivedBlocks,
    ) -> None:
        self._new_block = new_block
        self._blocks_per_rank = blocks_per_rank
        self._pairs = pairs
        self._arrived = arrived

    def receive(self, order: Receive) -> TransferDone:
        """Receive the blocks of *order* and keep them. Raises RuntimeError when it breaks."""
        blocks = [self._new_block() for _ in order.slots]
        posted = [self._post(owner, generation, order, blocks) for owner, generation in order.sends]
        for (owner, _), (pair, works) in zip(order.sends, posted, strict=True):
            pair.finish(works, f"from prefill rank {owner}")
        self._arrived.put(order.job_id, blocks)
        return TransferDone(order.job_id)

    def _post(
        self, owner: Rank, generation: int, order: Receive, blocks: list[Tensor]
    ) -> tuple[Pair, list[dist.Work]]:
        """Post the receives of one owner's blocks."""
        owned = [b for b, s in zip(blocks, order.slots, strict=True) if s // self._blocks_per_rank == owner]
        pair = self._pairs.of(Peer("prefill", owner), generation)
        return pair, pair.post_receives(owned)


class TransferThread(threading.Thread):
    """Carries out one transfer after the other, in the order of its own control stream.

    The coordinator tells all parts of a transfer before any of the next, so that the ranks of the
    oldest one that is not over are all at it: nobody waits in a circle.
    """

    def __init__(
        self,
        context: RankContext,
        device: torch.device,
        ends: Ends,
        connect: Callable[[], None] | None = None,
    ) -> None:
        """Carry out each kind of order by one of *ends*, after *connect* has met the other ends."""
        super().__init__(name="transfers", daemon=True)
        self._context = context
        self._device = device
        self._ends = ends
        self._connect = connect

    def run(self) -> None:
        """Connect, register, serve until Shutdown. An error ends the process, not the thread alone."""
        try:
            with own_stream(self._device):
                self._run()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    def _run(self) -> None:
        if self._connect is not None:
            self._connect()
        link = self._context.connect(transfers=True)  # here: a socket belongs to the thread that uses it
        link.send(Register(PROTOCOL_VERSION, os.getpid()))
        while True:
            order = self._context.receive(link, IDLE_MS)
            if isinstance(order, Shutdown):
                break
            if isinstance(order, TransferOrder):
                self._serve(link, order)
        link.close()

    def _serve(self, link: ControlLink, order: TransferOrder) -> None:
        try:
            answer = self._ends[type(order)](order)
        except RuntimeError as error:  # a group that did not come together is one, too
            if isinstance(order, Inspect):
                raise  # nobody else has a part in it: this rank cannot read its own memory
            link.send(TransferFailed(order.job_id, brief(error)))
        else:
            if answer is not None:
                link.send(answer)
