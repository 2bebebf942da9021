"""A decode rank: takes over a prompt's KV and produces its tokens, all its sequences in one batch.

It owns the output head and stops where the request said so; token 1 comes from its first step on a
sequence. While sequences are active it looks for messages between two steps without waiting.
"""

import traceback
from functools import partial

import torch

from vertumnus.domain.units import JobId, Tokens
from vertumnus.live.control import ControlLink
from vertumnus.live.decode_batch import DecodeBatch
from vertumnus.live.groups import brief, join_store
from vertumnus.live.kv_store import KvLayout, join_blocks
from vertumnus.live.messages import (
    Admit,
    Decoded,
    Ended,
    HandoffDone,
    HandoffFailed,
    Peer,
    Ping,
    Pong,
    Ready,
    Receive,
    Shutdown,
    Stop,
    ToRank,
    Welcome,
)
from vertumnus.live.pairs import PairGroups
from vertumnus.live.rank_context import IDLE_MS, RankContext, unpack_state
from vertumnus.live.shared_map import map_store
from vertumnus.live.transfer import (
    BlockSource,
    ReceivedBlocks,
    Receiver,
    SharedBlocks,
    TransferThread,
)
from vertumnus.live.weights import build_model


class DecodeRank:
    """One decode worker."""

    def __init__(self, context: RankContext, link: ControlLink, welcome: Welcome) -> None:
        """Load the weights and open the way on which KV comes."""
        plan = welcome.plan
        self._context, self._link = context, link
        device = context.device(plan)
        model = build_model(plan.model, plan.weights_path, plan.seed, device)
        self._dtype = model.dtype
        self._source = _block_source(context, welcome, device)
        self._batch = DecodeBatch(model, device)
        self._made: dict[JobId, Tokens] = {}

    def serve(self) -> None:
        """Take messages and decode in turn until Shutdown."""
        self._link.send(Ready())
        while True:
            message = self._context.receive(self._link, 0 if len(self._batch) else IDLE_MS)
            if isinstance(message, Shutdown):
                return
            if message is not None:
                self._take(message)
            elif len(self._batch):
                self._decode()

    def _take(self, message: ToRank) -> None:
        if isinstance(message, Admit):
            self._admit(message)
        elif isinstance(message, Stop):
            self._stop(message.job_id)
        elif isinstance(message, Ping):
            self._link.send(Pong())

    def _admit(self, admit: Admit) -> None:
        job_id = admit.job_id
        try:
            blocks = self._source.take(job_id, admit.slots)
            kv_LTW = join_blocks(blocks, admit.input_tokens)
            state_H = unpack_state(admit.final_hidden, self._dtype)
            self._batch.admit(job_id, kv_LTW, admit.input_tokens, state_H, admit.output_tokens)
        except Exception as error:  # this sequence fails, the others go on; details to the log
            traceback.print_exc()
            self._link.send(HandoffFailed(job_id, brief(error)))
            return
        self._made[job_id] = 0
        self._link.send(HandoffDone(job_id))

    def _stop(self, job_id: JobId) -> None:
        self._source.drop(job_id)
        if job_id in self._made:  # else its Ended is on the way already
            self._batch.remove(job_id)
            self._link.send(Ended(job_id, self._made.pop(job_id)))

    def _decode(self) -> None:
        made = self._batch.step()
        self._link.send(Decoded(tuple(one.job_id for one in made), tuple(one.token for one in made)))
        for one in made:
            self._made[one.job_id] += 1
            if one.is_last:
                self._link.send(Ended(one.job_id, self._made.pop(one.job_id)))


def _block_source(context: RankContext, welcome: Welcome, device: torch.device) -> BlockSource:
    """Return where prompts' blocks are found: in the maps that were handed down, else as received."""
    plan = welcome.plan
    layout = KvLayout.of_model(plan.model)
    slots, block_tokens = plan.blocks_per_rank, plan.block_tokens
    if plan.transport == "shared":
        stores = [map_store(fd, layout, slots, block_tokens, writable=False) for fd in welcome.kv_fds]
        return SharedBlocks(stores, slots)
    arrived = ReceivedBlocks()
    shape = (layout.layers, block_tokens, layout.width)
    meeting = join_store(welcome.store_port, plan.live.start_timeout_s)
    pairs = PairGroups(context.peer, meeting, device, plan.live.step_timeout_s)
    receiver = Receiver(lambda: torch.empty(shape, dtype=layout.dtype, device=device), slots, pairs, arrived)
    prefill_ranks = [Peer("prefill", rank) for rank in range(plan.lattice.gpus)]
    TransferThread(
        context, device, {Receive: receiver.receive}, partial(pairs.connect, prefill_ranks)
    ).start()
    return arrived
