"""A prefill rank's main loop: one message at a time, so nothing changes inside a step (sec. 6.2, 8).

A rank refuses a step of another worker or epoch before it enters a collective: a mismatch there would
not raise, it would abort the process. A new epoch is one more message in the stream: weights, KV and
groups stay where they are, and only what the rank holds its next steps against changes.
"""

import time
import traceback
from functools import partial

import torch
from torch._C._distributed_c10d import Store

from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.units import Rank
from vertumnus.live.control import ControlLink
from vertumnus.live.groups import CpGroups, brief, join_store
from vertumnus.live.inspection import Inspector
from vertumnus.live.kv_store import KvLayout, KvStore, allocate
from vertumnus.live.messages import (
    Adopt,
    Adopted,
    Copy,
    Inspect,
    Peer,
    Ping,
    Pong,
    Ready,
    Send,
    Shutdown,
    Step,
    StepDone,
    StepFailed,
    Welcome,
)
from vertumnus.live.pairs import PairGroups
from vertumnus.live.plan import LivePlan
from vertumnus.live.prefill import PrefillExecutor
from vertumnus.live.rank_context import IDLE_MS, RankContext, pack_state, unpack_ids
from vertumnus.live.shared_map import map_store
from vertumnus.live.slot_copy import PairwiseCopies, SharedCopies
from vertumnus.live.transfer import Ends, Sender, SharedBlocks, TransferThread
from vertumnus.live.weights import build_model


class PrefillRank:
    """One GPU's share of the prefill pool: weights, block slots, groups of the lattice."""

    def __init__(self, context: RankContext, link: ControlLink, welcome: Welcome) -> None:
        """Load, map and connect everything, so that the first step finds it warm."""
        plan, rank = welcome.plan, context.peer.rank
        self._context, self._link = context, link
        self._worker, self._epoch = welcome.worker, welcome.epoch
        device = context.device(plan)
        model = build_model(plan.model, plan.weights_path, plan.seed, device)
        maps = _maps(welcome, rank)
        store = maps[rank] if maps else _own_slots(plan, device)
        self._lattice = frozenset(plan.lattice.groups())
        self._groups = CpGroups(_meeting(welcome), rank, device, plan.live.step_timeout_s)
        self._groups.warm(plan.lattice.groups())
        self._executor = PrefillExecutor(model, store, rank, plan.blocks_per_rank)
        if maps:
            copies = SharedCopies(store, SharedBlocks(maps, plan.blocks_per_rank), plan.blocks_per_rank)
            inspector = Inspector(store, plan.blocks_per_rank)
            TransferThread(context, device, {Copy: copies.copy, Inspect: inspector.inspect}).start()
        else:
            _start_messages(context, welcome, store, device)

    def serve(self) -> None:
        """Answer messages until Shutdown."""
        self._link.send(Ready())
        while True:
            message = self._context.receive(self._link, IDLE_MS)
            if isinstance(message, Step):
                self._link.send(self._answer(message))
            elif isinstance(message, Adopt):
                self._link.send(self._adopt(message))
            elif isinstance(message, Ping):
                self._link.send(Pong())
            elif isinstance(message, Shutdown):
                return

    def _adopt(self, record: Adopt) -> Adopted:
        """Run the worker and epoch of *record* from here on.

        Raises ProtocolError, which ends this rank, for one that cannot follow: a rank that is out of
        step with its coordinator must not compute.
        """
        worker, epoch, rank = record.worker, record.epoch, self._context.peer.rank
        if worker not in self._lattice or rank not in worker.ranks or epoch <= self._epoch:
            raise ProtocolError(f"{worker} of epoch {epoch} cannot follow {self._worker} of {self._epoch}")
        self._worker, self._epoch = worker, epoch
        return Adopted(record.job_id)

    def _answer(self, step: Step) -> StepDone | StepFailed:
        try:
            return self._run(step)
        except Exception as error:  # told to the coordinator, which ends the step; details to the log
            traceback.print_exc()
            return StepFailed(step.job_id, brief(error))

    def _run(self, step: Step) -> StepDone:
        if (step.worker, step.epoch) != (self._worker, self._epoch):
            raise ProtocolError(
                f"step {step.job_id} is for worker {step.worker} of epoch {step.epoch}, "
                f"this rank serves {self._worker} of epoch {self._epoch}"
            )
        cpu_started = time.process_time_ns()
        tokens = {work.request_id: unpack_ids(ids) for work, ids in zip(step.works, step.tokens, strict=True)}
        communicator = self._groups.of(step.worker, step.generation)
        result = self._executor.run(step.works, tokens, step.worker, communicator)
        states = (result.final_hidden.get(work.request_id) for work in step.works)
        return StepDone(
            step.job_id,
            result.compute_ns,
            time.process_time_ns() - cpu_started,
            tuple(None if state is None else pack_state(state) for state in states),
        )


def _meeting(welcome: Welcome) -> Store:
    return join_store(welcome.store_port, welcome.plan.live.start_timeout_s)


def _maps(welcome: Welcome, owner: Rank) -> list[KvStore]:
    """Return the stores of all prefill ranks, *owner*'s to write to; none where memory is not shared."""
    plan, layout = welcome.plan, KvLayout.of_model(welcome.plan.model)
    slots, block_tokens = plan.blocks_per_rank, plan.block_tokens
    return [
        map_store(fd, layout, slots, block_tokens, writable=rank == owner)
        for rank, fd in enumerate(welcome.kv_fds)
    ]


def _own_slots(plan: LivePlan, device: torch.device) -> KvStore:
    return allocate(KvLayout.of_model(plan.model), plan.blocks_per_rank, plan.block_tokens, device)


def _start_messages(context: RankContext, welcome: Welcome, store: KvStore, device: torch.device) -> None:
    """Start the thread that moves blocks by messages, once it has met every other rank."""
    plan, rank = welcome.plan, context.peer.rank
    # a connection of its own: one thread's wait at the store would hold up the other
    pairs = PairGroups(context.peer, _meeting(welcome), device, plan.live.step_timeout_s)
    sender = Sender(store, plan.blocks_per_rank, pairs)
    copies = PairwiseCopies(rank, store, plan.blocks_per_rank, pairs)
    prefill_ranks = [Peer("prefill", other) for other in range(plan.lattice.gpus) if other != rank]
    decode_ranks = [Peer("decode", other) for other in range(plan.decode_ranks)]
    inspector = Inspector(store, plan.blocks_per_rank)
    ends: Ends = {Send: sender.send, Copy: copies.copy, Inspect: inspector.inspect}
    TransferThread(context, device, ends, partial(pairs.connect, prefill_ranks + decode_ranks)).start()
