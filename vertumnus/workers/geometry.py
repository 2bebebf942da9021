"""Changes of geometry: drain, adopt an epoch rank by rank, open again (sec. 6.2).

No step, hand-off or copy of a worker is under way when its ranks get a new group, so none ever mixes
two geometries.
"""

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.facts import EpochAdopted, WorkerDrained, WorkerFormed
from vertumnus.domain.jobs import Adopted, AdoptJob, JobError
from vertumnus.domain.orders import AdoptEpoch, CloseTransition, Drain, Reopen
from vertumnus.domain.units import Epoch, Nanoseconds
from vertumnus.workers.block_cache import BlockCache
from vertumnus.workers.fleet_state import FleetState
from vertumnus.workers.formation import Formations
from vertumnus.workers.losses import Losses
from vertumnus.workers.worker import Worker


class Geometry:
    """Which workers there are, and the acknowledgements of those that are being formed."""

    def __init__(self, state: FleetState, losses: Losses) -> None:
        self._state = state
        self._losses = losses
        self._formations = Formations()

    def __len__(self) -> int:
        return len(self._formations)

    def drain(self, order: Drain, now: Nanoseconds) -> None:
        """Give the worker's queue back and let it finish what it has begun."""
        state, worker = self._state, self._state.workers[order.worker]
        if worker.state != "serving":
            return  # it was lost while the order was made: the control plane hears of that
        worker.state, worker.is_told_drained = "draining", False
        state.return_queue(worker, now, "draining", is_failure=False)
        state.with_room.append(worker)

    def tell_drained(self, worker: Worker, now: Nanoseconds) -> None:
        """Tell, once, that *worker*, which is draining, has nothing under way any more."""
        if worker.is_at_boundary and not worker.is_told_drained:
            worker.is_told_drained = True
            self._state.facts.append(WorkerDrained(now, worker.group))

    def reopen(self, order: Reopen, _now: Nanoseconds) -> None:
        """Let the worker serve, unless it was lost."""
        worker = self._state.workers[order.worker]
        if worker.in_service:
            worker.state = "serving"
            self._state.with_room.append(worker)

    def adopt(self, order: AdoptEpoch, _now: Nanoseconds) -> None:
        """Replace drained workers by new ones over the same ranks and ask every rank to follow.

        Raises ProtocolError, and changes nothing, if a source is not whole or not drained.
        """
        workers = self._state.workers
        ranks = {rank for group in order.workers for rank in group.ranks}
        sources = [worker for worker in workers.values() if not ranks.isdisjoint(worker.group.ranks)]
        if {rank for worker in sources for rank in worker.group.ranks} != ranks:
            raise ProtocolError(f"epoch {order.epoch}: {order.workers} are not the ranks of whole workers")
        if not all(worker.in_service for worker in sources):
            return  # lost between its drain and this order
        if not all(worker.state == "draining" and worker.is_at_boundary for worker in sources):
            raise ProtocolError(f"epoch {order.epoch}: a source of {order.workers} is not drained")
        for worker in sources:
            del workers[worker.group]
        for group in order.workers:
            self._form(group, order.epoch, [worker.cache for worker in sources])

    def adopted(self, outcome: Adopted) -> None:
        """Tell a rank's acknowledgement, and with the last one that the worker is formed."""
        adoption = self._formations.acknowledge(outcome.job_id)
        if adoption is None:
            return
        worker, facts = adoption.worker, self._state.facts
        facts.append(EpochAdopted(outcome.at, adoption.rank, worker.epoch, worker.group))
        if adoption.doubles is not None:
            facts.append(WorkerFormed(outcome.at, worker.group, worker.epoch, adoption.doubles))

    def failed(self, outcome: JobError) -> bool:
        """Give up a rank's acknowledgement; return whether the job is one of these."""
        return self._formations.give_up(outcome.job_id)

    def close(self, order: CloseTransition, now: Nanoseconds) -> None:
        """Lose the targets of a transition that failed."""
        if order.outcome != "failed":
            return
        for group in order.targets:
            worker = self._state.workers.get(group)
            if worker is not None:
                self._losses.lose(worker, now, order.reason)

    def _form(self, group: CpGroup, epoch: Epoch, caches: list[BlockCache]) -> None:
        state = self._state
        cache, doubles = BlockCache.of_ranks(group, caches)
        worker = Worker(group, cache.blocks_per_rank, state.block_tokens, cache, epoch)
        worker.state = "forming"
        state.workers[group] = worker
        self._formations.begin(worker, doubles)
        for rank in group.ranks:
            state.worker_of_rank[rank] = worker
            job_id = state.next_job()
            self._formations.ask(job_id, rank, group)
            state.jobs.append(AdoptJob(job_id, rank, group, epoch))
