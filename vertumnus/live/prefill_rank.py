"""A prefill rank's main loop: one message at a time, so nothing changes inside a step (sec. 6.2, 8).

A rank refuses a step of another worker or epoch before it enters a collective: a mismatch there would
not raise, it would abort the process.
"""

import time
import traceback

import torch
from torch._C._distributed_c10d import Store

from vertumnus.domain.errors import ProtocolError
from vertumnus.live.control import ControlLink
from vertumnus.live.groups import CpGroups, brief, join_store
from vertumnus.live.kv_store import KvLayout, KvStore, allocate
from vertumnus.live.messages import Ping, Pong, Ready, Shutdown, Step, StepDone, StepFailed, Welcome
from vertumnus.live.prefill import PrefillExecutor
from vertumnus.live.rank_context import IDLE_MS, RankContext, pack_state, unpack_ids
from vertumnus.live.shared_map import map_store
from vertumnus.live.transfer import PairGroups, Sender, TransferThread
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
        store = _block_slots(welcome, device)
        limit_s = plan.live.step_timeout_s
        self._groups = CpGroups(_meeting(welcome), rank, device, limit_s)
        self._groups.warm(plan.lattice.groups())
        self._executor = PrefillExecutor(model, store, rank, plan.blocks_per_rank)
        if plan.transport == "pairwise":
            # a connection of its own: one thread's wait at the store would hold up the other
            pairs = PairGroups(_meeting(welcome), device, limit_s)
            sender = Sender(rank, store, plan.blocks_per_rank, pairs)
            TransferThread(context, sender, plan.decode_ranks).start()

    def serve(self) -> None:
        """Answer messages until Shutdown."""
        self._link.send(Ready())
        while True:
            message = self._context.receive(self._link, IDLE_MS)
            if isinstance(message, Step):
                self._link.send(self._answer(message))
            elif isinstance(message, Ping):
                self._link.send(Pong())
            elif isinstance(message, Shutdown):
                return

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


def _block_slots(welcome: Welcome, device: torch.device) -> KvStore:
    """Return this rank's store: in the map that it was handed, else on its own device."""
    plan = welcome.plan
    layout = KvLayout.of_model(plan.model)
    if welcome.kv_fds:
        (fd,) = welcome.kv_fds
        return map_store(fd, layout, plan.blocks_per_rank, plan.block_tokens, writable=True)
    return allocate(layout, plan.blocks_per_rank, plan.block_tokens, device)
