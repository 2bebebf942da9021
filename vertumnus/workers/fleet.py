"""The fleet: orders become jobs, and what the engine tells becomes facts (D3-D8).

One writer of worker state, the same for both backends. Each public method is one event: it takes
what happened and returns the facts that follow and the jobs that start, in order. A request holds
blocks from the start of its step to the end of its hand-off, and ends exactly once.
"""

from collections.abc import Iterator
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup, covers
from vertumnus.domain.errors import InvariantError, ProtocolError
from vertumnus.domain.facts import (
    DecodeRankLost,
    DerivedFact,
    EpochAdopted,
    FirstTokenEmitted,
    HandoffFailed,
    HandoffFinished,
    InputFact,
    Installed,
    RankLost,
    RequestArrived,
    RequestEnded,
    RequestsReturned,
    Status,
    StepFailed,
    StepFinished,
    StepItem,
    StepStarted,
    TransferFailed,
    TransferFinished,
    TransferStarted,
    WorkerDrained,
    WorkerFormed,
    WorkerResumed,
    WorkerStalled,
)
from vertumnus.domain.jobs import (
    Adopted,
    AdoptJob,
    AnyJob,
    AnyOutcome,
    CopyDone,
    CopyJob,
    DecodeDone,
    FirstToken,
    HandoffDone,
    HandoffJob,
    JobError,
    StepDone,
    StepJob,
    StepWork,
    StopJob,
)
from vertumnus.domain.orders import (
    AdoptEpoch,
    Answer,
    AnyOrder,
    Cancel,
    CloseTransition,
    Drain,
    NoteWindow,
    Prefill,
    Reject,
    Reopen,
    Transfer,
)
from vertumnus.domain.request import Request
from vertumnus.domain.units import Epoch, JobId, Nanoseconds, Rank, RequestId, Tokens
from vertumnus.workers.block_cache import BlockCache, UseClock
from vertumnus.workers.config import ClusterConfig
from vertumnus.workers.copies import Copy, abandon_copy, begin_copy, finish_copy
from vertumnus.workers.decode_pool import DecodePool
from vertumnus.workers.formation import Formations
from vertumnus.workers.worker import Occupancy, Worker


class Effects(NamedTuple):
    """What follows from one event."""

    facts: list[DerivedFact]
    jobs: list[AnyJob]


class FleetBooks(NamedTuple):
    """The fleet's closing balance; all zero, and nothing open, when every request has ended."""

    open_requests: int
    pinned_blocks: int
    blocks_in_use: int
    blocks_held: int
    decode_slots: int


class Fleet:
    """All workers, the decode pool and every request that has not ended."""

    def __init__(self, config: ClusterConfig, block_tokens: int) -> None:
        self._config = config
        self._block_tokens = block_tokens
        clock, per_rank = UseClock(), config.blocks_per_rank
        self.workers = {
            group: Worker(group, per_rank, block_tokens, BlockCache(group, per_rank, clock))
            for group in config.initial_composition().workers
        }
        self._worker_of_rank = {
            rank: worker for worker in self.workers.values() for rank in worker.group.ranks
        }
        self._pool = DecodePool(config.decode)
        self._requests: dict[RequestId, Request] = {}
        self._place_of: dict[RequestId, Worker] = {}
        self._occupied: dict[RequestId, Occupancy] = {}
        self._jobs_open: dict[JobId, Occupancy] = {}
        self._steps_open: dict[JobId, Worker] = {}
        self._formations = Formations()
        self._copies: dict[JobId, Copy] = {}
        self._last_job: JobId = 0
        self._facts: list[DerivedFact] = []
        self._jobs: list[AnyJob] = []
        self._conclude = {
            StepDone: self._step_done,
            HandoffDone: self._handoff_done,
            FirstToken: self._first_token,
            DecodeDone: self._decode_done,
            CopyDone: self._copy_done,
            Adopted: self._adopted,
            JobError: self._job_error,
        }
        self._carry_out = {
            Prefill: self._prefill,
            Transfer: self._transfer,
            Cancel: self._cancel,
            Reject: self._reject,
            Drain: self._drain,
            Reopen: self._reopen,
            AdoptEpoch: self._adopt_epoch,
            CloseTransition: self._close_transition,
            NoteWindow: self._told,
            Answer: self._told,
        }

    @property
    def open_requests(self) -> int:
        """Requests that arrived and have not ended."""
        return len(self._requests)

    @property
    def is_busy(self) -> bool:
        """Whether the engine has a job whose outcome is awaited."""
        return bool(self._steps_open or self._jobs_open or self._copies or self._formations)

    # ---- events ---------------------------------------------------------------------------------

    def note(self, fact: InputFact) -> Effects:
        """Take an input fact before the control plane answers it."""
        if type(fact) is RequestArrived:
            self._requests[fact.request.request_id] = fact.request
        elif type(fact) is RankLost:
            self._lose_worker(
                self._worker_of_rank[fact.rank], fact.at, f"rank {fact.rank} lost: {fact.reason}"
            )
        elif type(fact) is DecodeRankLost:
            self._lose_decode_rank(fact)
        return self._effects()

    def carry_out(self, order: AnyOrder, now: Nanoseconds) -> Effects:
        """Carry out one order at *now*. A SetTimer is the loop's, not the fleet's."""
        self._carry_out[type(order)](order, now)  # type: ignore[operator]
        return self._effects()

    def conclude(self, outcome: AnyOutcome) -> Effects:
        """Take what became of a job; a stale job id changes nothing."""
        self._conclude[type(outcome)](outcome)  # type: ignore[operator]
        return self._effects()

    def _effects(self) -> Effects:
        effects = Effects(self._facts, self._jobs)
        self._facts, self._jobs = [], []
        return effects

    # ---- orders ---------------------------------------------------------------------------------

    def _prefill(self, order: Prefill, now: Nanoseconds) -> None:
        request = self._requests[order.request_id]
        worker = self.workers[order.worker]
        if order.request_id in self._place_of or order.request_id in self._occupied:
            raise ProtocolError(f"request {order.request_id} is already at a worker")
        if worker.state != "serving":
            failed = worker.state == "out of service"
            self._facts.append(
                RequestsReturned(now, order.worker, (order.request_id,), worker.state, is_failure=failed)
            )
            return
        worker.enqueue(order, request)
        self._place_of[order.request_id] = worker
        self._start_step(worker, now)

    def _cancel(self, order: Cancel, now: Nanoseconds) -> None:
        request_id = order.request_id
        if request_id not in self._requests:
            return  # it ended while the wish to cancel it was on its way
        worker = self._place_of.get(request_id)
        occupancy = self._occupied.get(request_id)
        if occupancy is None:
            if worker is not None and worker.dequeue(request_id):
                del self._place_of[request_id]
            self._end(request_id, "cancelled", 0, now)
            if worker is not None:
                self._start_step(worker, now)
            return
        if occupancy.is_cancelled:
            return
        occupancy.is_cancelled = True
        if self._pool.withdraw(request_id):
            self._leave(occupancy)
            self._end(request_id, "cancelled", 0, now)
            self._after_decode(occupancy, now)
        elif occupancy.job_id is not None and occupancy.decode_rank is not None:
            self._jobs.append(StopJob(occupancy.job_id, occupancy.decode_rank))

    def _reject(self, order: Reject, now: Nanoseconds) -> None:
        self._end(order.request_id, order.status, 0, now, order.reason)

    # ---- steps ----------------------------------------------------------------------------------

    def _start_step(self, worker: Worker, now: Nanoseconds) -> None:
        if worker.step is not None or worker.stalled or worker.state != "serving" or not worker.queued:
            return
        taken, reservations = worker.take_ready(self._config.step_tokens)
        if not taken:
            return  # waits for hand-offs to give blocks back
        step_id = self._next_job()
        worker.step, worker.running = step_id, taken
        self._steps_open[step_id] = worker
        for occupancy in taken:
            request_id = occupancy.request.request_id
            del self._place_of[request_id]
            self._occupied[request_id] = occupancy
        items = tuple(
            StepItem(o.request.request_id, o.attempt, o.cached_blocks * self._block_tokens) for o in taken
        )
        evicted = tuple(gone for reservation in reservations for gone in reservation.evicted)
        self._facts.append(StepStarted(now, step_id, worker.group, worker.epoch, items, evicted))
        self._jobs.append(StepJob(step_id, worker.group, worker.epoch, tuple(map(self._work, taken))))

    def _step_done(self, outcome: StepDone) -> None:
        worker = self._steps_open.pop(outcome.job_id, None)
        if worker is None:
            return
        finished, worker.running, worker.step = worker.running, [], None
        installed = tuple(self._settle(worker, finished))
        self._facts.append(
            StepFinished(outcome.at, outcome.job_id, worker.group, outcome.compute_ns, installed)
        )
        for occupancy in finished:
            self._hand_off(worker, occupancy, outcome.at)
        self._after_room(worker, outcome.at)

    def _settle(self, worker: Worker, finished: list[Occupancy]) -> Iterator[Installed]:
        for occupancy in finished:
            owners = worker.settle(occupancy)
            if occupancy.cached_blocks < len(occupancy.path):
                yield Installed(occupancy.request.request_id, occupancy.cached_blocks, owners)

    def _fail_step(self, worker: Worker, now: Nanoseconds, reason: str) -> tuple[RequestId, ...]:
        step_id, failed = worker.step, worker.running
        if step_id is None:
            return ()
        del self._steps_open[step_id]
        worker.step, worker.running = None, []
        self._facts.append(StepFailed(now, step_id, worker.group, reason))
        for occupancy in failed:
            self._leave(occupancy)
        for occupancy in failed:
            if occupancy.is_cancelled:
                self._end(occupancy.request.request_id, "cancelled", 0, now)
        returned = tuple(o.request.request_id for o in failed if not o.is_cancelled)
        for request_id in returned:
            del self._occupied[request_id]
        return returned

    # ---- hand-off and decoding ------------------------------------------------------------------

    def _hand_off(self, worker: Worker, occupancy: Occupancy, now: Nanoseconds) -> None:
        request = occupancy.request
        if occupancy.is_cancelled:
            self._leave(occupancy)
            self._end(request.request_id, "cancelled", 0, now)
            return
        worker.handoff_blocks += len(occupancy.slots)
        occupancy.is_handing_off = True
        if self._pool.is_gone:
            self._return(occupancy, now, "no decode rank left")
            return
        rank = self._pool.admit(request.request_id, request.input_tokens + request.output_tokens)
        if rank is not None:
            self._submit_handoff(occupancy, rank)

    def _submit_handoff(self, occupancy: Occupancy, decode_rank: Rank) -> None:
        request = occupancy.request
        occupancy.job_id, occupancy.decode_rank = self._next_job(), decode_rank
        self._jobs_open[occupancy.job_id] = occupancy
        self._jobs.append(
            HandoffJob(
                occupancy.job_id,
                request.request_id,
                occupancy.attempt,
                occupancy.worker,
                decode_rank,
                request.input_tokens,
                request.output_tokens,
                tuple(occupancy.slots),
            )
        )

    def _handoff_done(self, outcome: HandoffDone) -> None:
        occupancy = self._jobs_open.get(outcome.job_id)
        if occupancy is None or not occupancy.holds_blocks or occupancy.decode_rank is None:
            return
        request_id = occupancy.request.request_id
        self._leave(occupancy)
        self._facts.append(HandoffFinished(outcome.at, request_id, occupancy.attempt, occupancy.decode_rank))
        self._after_room(self.workers[occupancy.worker], outcome.at)

    def _first_token(self, outcome: FirstToken) -> None:
        occupancy = self._jobs_open.get(outcome.job_id)
        if occupancy is not None and not occupancy.is_decoding:
            occupancy.is_decoding = True
            self._facts.append(FirstTokenEmitted(outcome.at, occupancy.request.request_id, occupancy.attempt))

    def _decode_done(self, outcome: DecodeDone) -> None:
        occupancy = self._close_handoff(outcome.job_id)
        if occupancy is None:
            return
        status: Status = "cancelled" if occupancy.is_cancelled else "finished"
        self._leave(occupancy)  # a stop may come before the copy was confirmed
        self._end(occupancy.request.request_id, status, outcome.output_tokens, outcome.at)
        self._after_decode(occupancy, outcome.at)

    def _job_error(self, outcome: JobError) -> None:
        if self._formations.give_up(outcome.job_id):
            return
        if outcome.job_id in self._copies:
            self._copy_failed(outcome)
            return
        worker = self._steps_open.get(outcome.job_id)
        if worker is not None:
            # its group may be stuck in a collective: out of service until a new epoch (sec. 6.2)
            self._lose_worker(worker, outcome.at, outcome.reason)
            return
        occupancy = self._close_handoff(outcome.job_id)
        if occupancy is not None:
            self._break_handoff(occupancy, outcome.at, outcome.reason)
            self._after_decode(occupancy, outcome.at)

    def _close_handoff(self, job_id: JobId) -> Occupancy | None:
        occupancy = self._jobs_open.pop(job_id, None)
        if occupancy is not None and occupancy.decode_rank is not None:
            self._pool.release(occupancy.decode_rank, occupancy.request.request_id)
        return occupancy

    def _break_handoff(self, occupancy: Occupancy, now: Nanoseconds, reason: str) -> None:
        request_id, rank = occupancy.request.request_id, occupancy.decode_rank
        if rank is not None:
            self._facts.append(HandoffFailed(now, request_id, occupancy.attempt, rank, reason))
        self._return(occupancy, now, reason)

    def _after_decode(self, occupancy: Occupancy, now: Nanoseconds) -> None:
        self._admit_waiting()
        worker = self.workers.get(occupancy.worker)
        if worker is not None:  # else it was split or merged while its prompt was decoded
            self._after_room(worker, now)

    def _admit_waiting(self) -> None:
        for request_id, rank in self._pool.admit_waiting():
            self._submit_handoff(self._occupied[request_id], rank)

    # ---- copies between workers -----------------------------------------------------------------

    def _transfer(self, order: Transfer, now: Nanoseconds) -> None:
        copy = begin_copy(order, self.workers[order.destination], self._worker_of_rank)
        if isinstance(copy, str):
            self._facts.append(TransferFailed(now, order.transfer_id, order.destination, copy))
            return
        copy.destination.awaited_transfers.add(order.transfer_id)
        job_id = self._next_job()
        self._copies[job_id] = copy
        self._facts.append(TransferStarted(now, order.transfer_id, order.destination, copy.evicted))
        self._jobs.append(CopyJob(job_id, order.destination, copy.moves))

    def _copy_done(self, outcome: CopyDone) -> None:
        copy = self._copies.pop(outcome.job_id, None)
        if copy is None:
            return
        order = copy.order
        if not copy.destination.in_service:
            self._end_copy(copy, outcome.at, "its destination was lost")
            return
        owners = finish_copy(copy)
        self._facts.append(
            TransferFinished(
                outcome.at,
                order.transfer_id,
                order.destination,
                copy.first_block,
                owners,
                outcome.payload_bytes,
                outcome.wire_ns,
            )
        )
        self._after_copy(copy, outcome.at)

    def _copy_failed(self, outcome: JobError) -> None:
        self._end_copy(self._copies.pop(outcome.job_id), outcome.at, outcome.reason)

    def _end_copy(self, copy: Copy, now: Nanoseconds, reason: str) -> None:
        abandon_copy(copy)
        order = copy.order
        self._facts.append(TransferFailed(now, order.transfer_id, order.destination, reason))
        self._after_copy(copy, now)

    def _after_copy(self, copy: Copy, now: Nanoseconds) -> None:
        copy.destination.awaited_transfers.discard(copy.order.transfer_id)
        for worker, _keys in copy.pinned:
            self._after_room(worker, now)

    # ---- change of geometry ---------------------------------------------------------------------

    def _drain(self, order: Drain, now: Nanoseconds) -> None:
        worker = self.workers[order.worker]
        if worker.state != "serving":
            return  # it was lost while the order was made: the control plane hears of that
        worker.state, worker.is_told_drained = "draining", False
        returned = worker.empty_queue()
        for request_id in returned:
            del self._place_of[request_id]
        if returned:
            self._facts.append(RequestsReturned(now, worker.group, returned, "draining", is_failure=False))
        self._after_room(worker, now)

    def _reopen(self, order: Reopen, now: Nanoseconds) -> None:
        worker = self.workers[order.worker]
        if worker.state != "out of service":
            worker.state = "serving"
            self._after_room(worker, now)

    def _adopt_epoch(self, order: AdoptEpoch, now: Nanoseconds) -> None:
        ranks = {rank for group in order.workers for rank in group.ranks}
        sources = [worker for worker in self.workers.values() if not ranks.isdisjoint(worker.group.ranks)]
        if {rank for worker in sources for rank in worker.group.ranks} != ranks:
            raise ProtocolError(f"epoch {order.epoch}: {order.workers} are not the ranks of whole workers")
        if any(worker.state == "out of service" for worker in sources):
            return  # lost between its drain and this order
        if not all(worker.state == "draining" and worker.is_at_boundary for worker in sources):
            raise ProtocolError(f"epoch {order.epoch}: a source of {order.workers} is not drained")
        for worker in sources:
            del self.workers[worker.group]
        for group in order.workers:
            self._form(group, order.epoch, [worker.cache for worker in sources])

    def _form(self, group: CpGroup, epoch: Epoch, caches: list[BlockCache]) -> None:
        cache, doubles = BlockCache.of_ranks(group, caches)
        worker = Worker(group, cache.blocks_per_rank, self._block_tokens, cache, epoch)
        worker.state = "forming"
        self.workers[group] = worker
        self._formations.begin(worker, doubles)
        for rank in group.ranks:
            self._worker_of_rank[rank] = worker
            job_id = self._next_job()
            self._formations.ask(job_id, rank, group)
            self._jobs.append(AdoptJob(job_id, rank, group, epoch))

    def _adopted(self, outcome: Adopted) -> None:
        adoption = self._formations.acknowledge(outcome.job_id)
        if adoption is None:
            return
        worker = adoption.worker
        self._facts.append(EpochAdopted(outcome.at, adoption.rank, worker.epoch, worker.group))
        if adoption.doubles is not None:
            self._facts.append(WorkerFormed(outcome.at, worker.group, worker.epoch, adoption.doubles))

    def _close_transition(self, order: CloseTransition, now: Nanoseconds) -> None:
        if order.outcome == "failed":
            for group in order.targets:
                worker = self.workers.get(group)
                if worker is not None:
                    self._lose_worker(worker, now, order.reason)

    def _told(self, order: NoteWindow | Answer, now: Nanoseconds) -> None:
        """Such an order is the log's and the console's; no worker changes."""

    # ---- losses ---------------------------------------------------------------------------------

    def _lose_worker(self, worker: Worker, now: Nanoseconds, reason: str) -> None:
        if worker.state == "out of service":
            return
        worker.state = "out of service"
        returned = self._fail_step(worker, now, reason) + worker.empty_queue()
        for request_id in returned:
            self._place_of.pop(request_id, None)
        if returned:
            self._facts.append(RequestsReturned(now, worker.group, returned, reason))
        for occupancy in [o for o in self._occupied.values() if o.worker == worker.group]:
            if occupancy.job_id is None and self._pool.withdraw(occupancy.request.request_id):
                self._return(occupancy, now, reason)
        self._admit_waiting()  # one that left the line may have kept smaller ones waiting

    def _lose_decode_rank(self, fact: DecodeRankLost) -> None:
        reason = f"decode rank {fact.rank} lost: {fact.reason}"
        for request_id in self._pool.lose(fact.rank):
            occupancy = self._occupied[request_id]
            if occupancy.job_id is not None:
                self._close_handoff(occupancy.job_id)
            self._break_handoff(occupancy, fact.at, reason)
        if self._pool.is_gone:
            for occupancy in list(self._occupied.values()):
                if self._pool.withdraw(occupancy.request.request_id):
                    self._return(occupancy, fact.at, reason)
        for worker in self.workers.values():
            self._after_room(worker, fact.at)

    # ---- shared bookkeeping ---------------------------------------------------------------------

    def _return(self, occupancy: Occupancy, now: Nanoseconds, reason: str) -> None:
        request_id = occupancy.request.request_id
        self._leave(occupancy)
        if occupancy.is_cancelled:
            self._end(request_id, "cancelled", 0, now)
            return
        del self._occupied[request_id]
        self._facts.append(RequestsReturned(now, occupancy.worker, (request_id,), reason))

    def _leave(self, occupancy: Occupancy) -> None:
        if not occupancy.holds_blocks:
            return
        worker = self.workers[occupancy.worker]
        if occupancy.is_handing_off:
            worker.handoff_blocks -= len(occupancy.slots)
            occupancy.is_handing_off = False
        worker.leave(occupancy)

    def _end(
        self,
        request_id: RequestId,
        status: Status,
        tokens: Tokens,
        now: Nanoseconds,
        reason: str | None = None,
    ) -> None:
        del self._requests[request_id]
        self._occupied.pop(request_id, None)
        self._facts.append(RequestEnded(now, request_id, status, tokens, reason))

    def _after_room(self, worker: Worker, now: Nanoseconds) -> None:
        self._stall_or_resume(worker, now)
        self._start_step(worker, now)
        if worker.state == "draining" and worker.is_at_boundary and not worker.is_told_drained:
            worker.is_told_drained = True
            self._facts.append(WorkerDrained(now, worker.group))

    def _stall_or_resume(self, worker: Worker, now: Nanoseconds) -> None:
        stalled = worker.handoff_blocks > self._config.handoff_share * worker.cache.capacity
        if stalled != worker.stalled and worker.state == "serving":
            worker.stalled = stalled
            self._facts.append((WorkerStalled if stalled else WorkerResumed)(now, worker.group))

    def _work(self, occupancy: Occupancy) -> StepWork:
        request = occupancy.request
        return StepWork(
            request.request_id,
            occupancy.attempt,
            request.input_tokens,
            occupancy.cached_blocks * self._block_tokens,
            tuple(occupancy.slots),
        )

    def _next_job(self) -> JobId:
        self._last_job += 1
        return self._last_job

    # ---- audit ----------------------------------------------------------------------------------

    def books(self) -> FleetBooks:
        """Return the balance of blocks, pins and decode slots over all workers."""
        caches = [worker.cache for worker in self.workers.values()]
        return FleetBooks(
            open_requests=len(self._requests),
            pinned_blocks=sum(cache.pinned for cache in caches),
            blocks_in_use=sum(cache.used for cache in caches),
            blocks_held=sum(cache.resident for cache in caches),
            decode_slots=self._pool.in_use,
        )

    def check(self) -> None:
        """Raise InvariantError unless every book balances: GPUs, blocks, pins, hand-offs, decode slots."""
        idle = [w.group for w in self.workers.values() if w.state == "out of service"]
        serving = [w.group for w in self.workers.values() if w.state != "out of service"]
        if not covers(serving, (r for group in idle for r in group.ranks), self._config.gpus):
            raise InvariantError("workers in service and ranks out of service are not the G ranks")
        for worker in self.workers.values():
            worker.check()
            self._check_worker(worker)
        self._pool.check()

    def _check_worker(self, worker: Worker) -> None:
        here = [o for o in self._occupied.values() if o.worker == worker.group and o.holds_blocks]
        copies = [copy for copy in self._copies.values() if copy.destination is worker]
        private = sum(len(o.private) for o in here) + sum(len(copy.slots) for copy in copies)
        if worker.cache.used != worker.cache.resident + private:
            raise InvariantError(
                f"worker {worker.group}: {worker.cache.used} slots used, not all accounted for"
            )
        handing_off = sum(len(o.slots) for o in here if o.is_handing_off)
        if handing_off != worker.handoff_blocks:
            raise InvariantError(
                f"worker {worker.group}: hand-offs hold {handing_off} blocks, counted {worker.handoff_blocks}"
            )
        pinned = {key for o in here for key in o.path} | {
            key
            for copy in self._copies.values()
            for owner, keys in copy.pinned
            if owner is worker
            for key in keys
        }
        if len(pinned) != worker.cache.pinned:
            raise InvariantError(
                f"worker {worker.group}: {worker.cache.pinned} blocks pinned, {len(pinned)} in use"
            )
