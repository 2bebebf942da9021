"""What the parts of the fleet share: who is where, and what the event under way has said so far."""

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import DerivedFact, RequestEnded, RequestsReturned, Status
from vertumnus.domain.jobs import AnyJob
from vertumnus.domain.request import Request
from vertumnus.domain.units import JobId, Nanoseconds, Rank, RequestId, Tokens
from vertumnus.workers.block_cache import BlockCache, UseClock
from vertumnus.workers.config import ClusterConfig
from vertumnus.workers.worker import Occupancy, Worker


class FleetState:
    """Workers, requests, the outbox, and the only ways in which a request leaves a worker or the pool."""

    def __init__(self, config: ClusterConfig, block_tokens: Tokens) -> None:
        self.config = config
        self.block_tokens = block_tokens
        clock, per_rank = UseClock(), config.blocks_per_rank
        self.clock = clock
        self.workers: dict[CpGroup, Worker] = {
            group: Worker(group, per_rank, block_tokens, BlockCache(group, per_rank, clock))
            for group in config.initial_composition().workers
        }
        self.worker_of_rank: dict[Rank, Worker] = {
            rank: worker for worker in self.workers.values() for rank in worker.group.ranks
        }
        self.requests: dict[RequestId, Request] = {}
        """Requests that arrived and have not ended."""
        self.queued_at: dict[RequestId, Worker] = {}
        self.occupied: dict[RequestId, Occupancy] = {}
        """Those whose step has started, until they end or go back to the control plane."""
        self.facts: list[DerivedFact] = []
        """Facts of this event, in order."""
        self.jobs: list[AnyJob] = []
        """Jobs that start with this event, in order."""
        self.with_room: list[Worker] = []
        """Workers to look at when this event is through: they may have room, or work, or be drained."""
        self._last_job: JobId = 0

    def next_job(self) -> JobId:
        """Return a job id that was not used yet."""
        self._last_job += 1
        return self._last_job

    def leave(self, occupancy: Occupancy) -> None:
        """Give back the blocks of *occupancy*, unless it has left already."""
        if not occupancy.holds_blocks:
            return
        worker = self.workers[occupancy.worker]
        if occupancy.is_handing_off:
            worker.handoff_blocks -= len(occupancy.slots)
            occupancy.is_handing_off = False
        worker.leave(occupancy)

    def give_back(
        self, occupancy: Occupancy, now: Nanoseconds, reason: str, *, is_final: bool = False
    ) -> None:
        """Return its request to the control plane, or end it when nobody wants it any more."""
        request_id = occupancy.request.request_id
        self.leave(occupancy)
        if occupancy.is_cancelled:
            self.end(request_id, "cancelled", 0, now)
            return
        del self.occupied[request_id]
        self.facts.append(RequestsReturned(now, occupancy.worker, (request_id,), reason, is_final=is_final))

    def return_queue(
        self,
        worker: Worker,
        now: Nanoseconds,
        reason: str,
        *,
        is_failure: bool = True,
        is_final: bool = False,
    ) -> None:
        """Return everybody in the queue of *worker* to the control plane."""
        returned = worker.empty_queue()
        for request_id in returned:
            del self.queued_at[request_id]
        if returned:
            self.facts.append(RequestsReturned(now, worker.group, returned, reason, is_failure, is_final))

    def end(
        self,
        request_id: RequestId,
        status: Status,
        output_tokens: Tokens,
        now: Nanoseconds,
        reason: str | None = None,
    ) -> None:
        """End a request that holds no blocks; this happens once to each."""
        del self.requests[request_id]
        self.occupied.pop(request_id, None)
        self.facts.append(RequestEnded(now, request_id, status, output_tokens, reason))
