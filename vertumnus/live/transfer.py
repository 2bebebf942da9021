"""How a prompt's KV reaches a decode rank: through memory that both map, or by messages.

Messages run on a two-rank process group for each pair, in a thread with a control stream of its own:
a transfer that breaks kills its pair's group and nothing else, and computing goes on beside it.
The receiving end posts all its receives before it waits; the sending end waits for them.
"""

import os
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import Store

from vertumnus.domain.units import JobId, Rank, SlotId
from vertumnus.live.control import ControlLink
from vertumnus.live.groups import brief, make_group
from vertumnus.live.kv_store import KvStore
from vertumnus.live.messages import (
    PROTOCOL_VERSION,
    Receive,
    Register,
    Send,
    Shutdown,
    TransferDone,
    TransferFailed,
)
from vertumnus.live.rank_context import IDLE_MS, RankContext

_PREFILL_END, _DECODE_END = 0, 1


class BlockSource(Protocol):
    """Where a decode rank finds the KV of a prompt that it admits."""

    def take(self, job_id: JobId, slots: Sequence[SlotId]) -> list[Tensor]:
        """Return the prompt's blocks, each [layers, block_tokens, width], to be copied from at once."""

    def drop(self, job_id: JobId) -> None:
        """Forget a prompt that nobody will take."""


class SharedBlocks:
    """The KV maps of all prefill ranks of this host, read-only."""

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
        return self._arrived.pop(job_id)

    def drop(self, job_id: JobId) -> None:
        """Forget the blocks if they have arrived."""
        self._arrived.pop(job_id, None)


class PairGroups:
    """Two-rank groups between a prefill and a decode rank, made at start; a dead one's successor on use."""

    def __init__(self, store: Store, device: torch.device, timeout_s: float) -> None:
        self._store = store
        self._device = device
        self._timeout_s = timeout_s
        self._made: dict[tuple[Rank, Rank], tuple[int, dist.ProcessGroup]] = {}

    def of(self, prefill: Rank, decode: Rank, generation: int, place: int) -> dist.ProcessGroup:
        """Return the pair's *generation*-th group as seen from *place*: 0 sends, 1 receives."""
        made = self._made.get((prefill, decode))
        if made is None or made[0] != generation:
            prefix = f"pair/{prefill}-{decode}/{generation}"
            group = make_group(self._store, prefix, place, 2, self._device, self._timeout_s)
            self._made[prefill, decode] = made = (generation, group)
        return made[1]


class Sender:
    """A prefill rank's end: sends blocks out of its store."""

    def __init__(self, rank: Rank, store: KvStore, blocks_per_rank: int, pairs: PairGroups) -> None:
        self._rank = rank
        self._store = store
        self._blocks_per_rank = blocks_per_rank
        self._pairs = pairs

    def connect(self, decode_ranks: int) -> None:
        """Meet every decode rank; both ends go by rising rank, so that nobody waits in a circle."""
        for decode_rank in range(decode_ranks):
            self._pairs.of(self._rank, decode_rank, 0, _PREFILL_END)

    def carry_out(self, order: Send | Receive) -> TransferDone | None:
        """Send the slots of *order* and wait until they have left. Raises RuntimeError when it breaks."""
        assert isinstance(order, Send)
        group = self._pairs.of(self._rank, order.decode_rank, order.generation, _PREFILL_END)
        blocks = [self._store.block(slot % self._blocks_per_rank) for slot in order.slots]
        sends = [group.send([block], _DECODE_END, tag) for tag, block in enumerate(blocks)]
        _wait_all(sends, f"to decode rank {order.decode_rank}")
        return None  # the receiving end says that it is done


class Receiver:
    """A decode rank's end: receives a prompt's blocks from every owner into memory of its own."""

    def __init__(
        self,
        rank: Rank,
        new_block: Callable[[], Tensor],
        blocks_per_rank: int,
        pairs: PairGroups,
        arrived: ReceivedBlocks,
    ) -> None:
        self._rank = rank
        self._new_block = new_block
        self._blocks_per_rank = blocks_per_rank
        self._pairs = pairs
        self._arrived = arrived

    def connect(self, prefill_ranks: int) -> None:
        """Meet every prefill rank, by rising rank."""
        for prefill_rank in range(prefill_ranks):
            self._pairs.of(prefill_rank, self._rank, 0, _DECODE_END)

    def carry_out(self, order: Send | Receive) -> TransferDone | None:
        """Receive the blocks of *order* and keep them. Raises RuntimeError when it breaks."""
        assert isinstance(order, Receive)
        blocks = [self._new_block() for _ in order.slots]
        works = [self._post(owner, generation, order, blocks) for owner, generation in order.sends]
        for (owner, _), of_owner in zip(order.sends, works, strict=True):
            _wait_all(of_owner, f"from prefill rank {owner}")
        self._arrived.put(order.job_id, blocks)
        return TransferDone(order.job_id)

    def _post(self, owner: Rank, generation: int, order: Receive, blocks: list[Tensor]) -> list[dist.Work]:
        """Post the receives of one owner's blocks."""
        group = self._pairs.of(owner, self._rank, generation, _DECODE_END)
        owned = [b for b, s in zip(blocks, order.slots, strict=True) if s // self._blocks_per_rank == owner]
        return [group.recv([block], _PREFILL_END, tag) for tag, block in enumerate(owned)]


class TransferThread(threading.Thread):
    """Carries out one transfer after the other, in the order of its own control stream."""

    def __init__(self, context: RankContext, end: Sender | Receiver, others: int) -> None:
        """Serve *end*, which has *others* ranks at the other ends."""
        super().__init__(name="transfers", daemon=True)
        self._context = context
        self._end = end
        self._others = others

    def run(self) -> None:
        """Connect, register, serve until Shutdown. An error ends the process, not the thread alone."""
        try:
            self._run()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    def _run(self) -> None:
        self._end.connect(self._others)
        link = self._context.connect(transfers=True)  # here: a socket belongs to the thread that uses it
        link.send(Register(PROTOCOL_VERSION, os.getpid()))
        while True:
            order = self._context.receive(link, IDLE_MS)
            if isinstance(order, Shutdown):
                break
            if isinstance(order, Send | Receive):
                self._serve(link, order)
        link.close()

    def _serve(self, link: ControlLink, order: Send | Receive) -> None:
        try:
            answer = self._end.carry_out(order)
        except RuntimeError as error:  # a group that did not come together is one, too
            link.send(TransferFailed(order.job_id, brief(error)))
        else:
            if answer is not None:
                link.send(answer)


def _wait_all(works: Sequence[dist.Work], direction: str) -> None:
    try:
        for work in works:
            work.wait()
    except RuntimeError as error:  # gloo's and NCCL's own
        raise RuntimeError(f"{direction}: {brief(error)}") from error
    if torch.cuda.is_available():  # NCCL's wait only orders streams; the blocks must have moved
        torch.cuda.current_stream().synchronize()
