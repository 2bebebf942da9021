"""The live backend: ranks that compute, on the wall clock (sec. 8).

The engine is the coordinator of live-engine's protocol: the only process that talks to ranks, one
ordered stream each. Jobs become messages, answers become outcomes, a rank that is gone becomes a fact.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from vertumnus.domain import jobs
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.facts import DecodeRankLost, InputFact, RankLost, TimerFired
from vertumnus.domain.jobs import (
    AdoptJob,
    AnyJob,
    AnyOutcome,
    CopyJob,
    HandoffJob,
    JobError,
    StepJob,
    StepWork,
    StopJob,
)
from vertumnus.domain.units import SECOND, Epoch, JobId, Nanoseconds, Rank, RequestId, SlotId
from vertumnus.live.agenda import Agenda
from vertumnus.live.control import Received
from vertumnus.live.copies import CopyBook, CopyResult
from vertumnus.live.geometry import Geometry
from vertumnus.live.handoffs import HandoffBook
from vertumnus.live.inspection import Inspection
from vertumnus.live.messages import (
    Adopted,
    Copied,
    Decoded,
    Ended,
    HandoffDone,
    HandoffFailed,
    Inspected,
    Peer,
    Step,
    StepDone,
    StepFailed,
    TransferDone,
    TransferFailed,
)
from vertumnus.live.plan import LivePlan
from vertumnus.live.posting import Posting
from vertumnus.live.rank_context import pack_ids
from vertumnus.live.rank_pool import FIRST_EPOCH, INCARNATION, Event, Lost, RankPool
from vertumnus.live.steps import StepBook, StepResult

PromptLookup: TypeAlias = Callable[[RequestId], NDArray[np.integer[Any]]]
"""Returns a request's token ids, shape (L,)."""

TokenSink: TypeAlias = Callable[[RequestId, tuple[int, ...]], None]
"""Takes the tokens that a request has just produced; called between two facts, never beside one."""

_UNDELIVERED: Nanoseconds = 0
"""Stands in ``at`` until the moment of delivery."""

_LONGEST_WAIT_NS = SECOND // 5
"""Heartbeats, and where the system cannot wait on a process its end, go unnoticed no longer than this."""


class LiveEngine:
    """An `Engine` over rank processes. Use: start, start_clock, then serve; close in any case."""

    def __init__(
        self,
        plan: LivePlan,
        prompts: PromptLookup,
        on_tokens: TokenSink,
        first_epoch: Epoch = FIRST_EPOCH,
    ) -> None:
        """Prepare; nothing runs before `start`. Ranks begin as the plan's workers in *first_epoch*."""
        self.plan = plan
        self.first_epoch = first_epoch
        self.prompts = prompts
        self.on_tokens = on_tokens
        self.before_wait: Callable[[], object] = _nothing
        """Called before each wait, at least every `_LONGEST_WAIT_NS`: what must not stay behind meanwhile."""
        self.last_step: StepResult | None = None
        """What the ranks measured in the step told last; calibration reads it."""
        self._pool = RankPool(plan, first_epoch)
        self._agenda = Agenda()
        self._steps = StepBook()
        self._geometry = Geometry(plan.lattice, plan.workers, first_epoch)
        by_transfer = plan.transport == "pairwise"
        self._handoffs = HandoffBook(plan.blocks_per_rank, by_transfer=by_transfer)
        self._copies = CopyBook(plan.lattice.gpus, plan.blocks_per_rank, by_transfer=by_transfer)
        self._inspection = Inspection((), plan.blocks_per_rank)
        # by the slot of the prompt's last block: bounded by the slots, whatever becomes of requests
        self._final_hidden: dict[SlotId, tuple[RequestId, bytes]] = {}
        self._ready: deque[InputFact | AnyOutcome] = deque()
        # a due timer among those: until it is told, nothing else that is due overtakes it
        self._late: TimerFired | None = None
        self._origin_ns = time.monotonic_ns()
        self._submit: dict[type[AnyJob], Callable[[Any], None]] = {
            StepJob: self._submit_step,
            HandoffJob: self._submit_handoff,
            StopJob: self._submit_stop,
            AdoptJob: self._submit_adopt,
            CopyJob: self._submit_copy,
        }
        self._take_message: dict[type, Callable[[Peer, Any], None]] = {
            StepDone: self._on_step_answer,
            StepFailed: self._on_step_answer,
            TransferDone: self._on_transfer_done,
            TransferFailed: self._on_transfer_failed,
            Adopted: self._on_adopted,
            Copied: self._on_copied,
            Inspected: self._on_inspected,
            HandoffDone: self._on_handoff_done,
            HandoffFailed: self._on_handoff_failed,
            Decoded: self._on_decoded,
            Ended: self._on_ended,
        }

    def start(self) -> None:
        """Start all ranks and wait until they are ready.

        Call it from a thread that lives as long as the run: on Linux ranks die with the thread that
        started them.
        Raises ConfigError for the user's mistakes, StartError for the rest. Call `close` even then.
        """
        self._pool.start()
        self._pool.wake_on(self._agenda.wake_fd)

    def start_clock(self) -> None:
        """Make this moment 0 of the run's clock: what came before is not part of the run.

        Raises ProtocolError while something is scheduled or under way.
        """
        if self._agenda or self._is_awaiting:
            raise ProtocolError("the run's clock must start before anything is scheduled or under way")
        self._origin_ns = time.monotonic_ns()

    @property
    def pids(self) -> list[int]:
        """Process ids of the ranks that are up."""
        return self._pool.pids

    # ---- the contract of a backend --------------------------------------------------------------

    def now(self) -> Nanoseconds:
        """Return the time since `start_clock` [ns]."""
        return time.monotonic_ns() - self._origin_ns

    def schedule(self, fact: InputFact, at_ns: Nanoseconds) -> None:
        """Deliver *fact* from `next` at *at_ns*, or at once when that has passed."""
        self._agenda.schedule(fact, at_ns)

    def post(self, fact: InputFact) -> None:
        """Deliver *fact* from `next` as soon as possible; safe to call from another thread."""
        self._agenda.post(fact)

    def submit(self, job: AnyJob) -> None:
        """Start *job*. Raises ProtocolError for one that cannot follow the jobs before it."""
        self._submit[type(job)](job)

    def next(self) -> InputFact | AnyOutcome | None:
        """Return what happens next; None when nothing is scheduled, under way or posted."""
        while True:
            told = self._happening()
            if told is not None:
                return replace(told, at=self.now())
            if not self._agenda and not self._is_awaiting:
                return None
            self.before_wait()
            self._pool.wait(self._agenda.wait_ns(self.now(), _LONGEST_WAIT_NS) / SECOND)
            self._take_arrived()

    # ---- for those who check memory -------------------------------------------------------------

    def digests(self, slots: Iterable[SlotId]) -> dict[SlotId, bytes]:
        """Return what the ranks find in *slots* now, without those of ranks that are gone.

        Waits for the ranks, not for their steps; what they tell meanwhile comes from `next` as ever.
        """
        inspection = self._inspection = Inspection(slots, self.plan.blocks_per_rank)
        for posting in list(inspection.postings()):
            if self._pool.is_up(posting.peer.process):
                self._pool.send(posting.peer, posting.body)
            else:
                inspection.lose(posting.peer.rank)
        while inspection:
            self._pool.wait(_LONGEST_WAIT_NS / SECOND)
            self._take_arrived()
        return inspection.found

    def close(self) -> None:
        """Stop every rank and free what they held; safe to call twice."""
        self._pool.close()
        self._agenda.close()

    # ---- jobs -----------------------------------------------------------------------------------

    @property
    def _is_awaiting(self) -> bool:
        under_way = len(self._handoffs) + len(self._copies) + len(self._geometry)
        return bool(self._ready or self._steps.awaited or under_way)

    def _refuses(self, job: AnyJob, peers: Iterable[Peer]) -> bool:
        """Return whether *job* ends here, in an error, since one of *peers* is gone."""
        gone = [str(peer) for peer in peers if not self._pool.is_up(peer)]
        if gone:
            self._tell_error(job.job_id, f"{', '.join(gone)} is gone")
        return bool(gone)

    def _submit_step(self, job: StepJob) -> None:
        peers = _prefill_peers(job.worker.ranks)
        if self._refuses(job, peers):
            return
        for rank in job.worker.ranks:
            self._geometry.require_settled(rank)
        tokens = tuple(self._uncached_tokens(work) for work in job.works)
        generation = self._steps.begin(job)
        step = Step(job.job_id, job.worker, job.epoch, generation, job.works, tokens)
        self._post_all(Posting(peer, step) for peer in peers)

    def _uncached_tokens(self, work: StepWork) -> bytes:
        prompt = self.prompts(work.request_id)
        if len(prompt) != work.input_tokens:
            raise ProtocolError(
                f"request {work.request_id}: a prompt of {len(prompt)} tokens, a step of {work.input_tokens}"
            )
        return pack_ids(prompt[work.cached_tokens :])

    def _submit_handoff(self, job: HandoffJob) -> None:
        request_id, final_hidden = self._final_hidden.get(job.slots[-1], (None, b""))
        if request_id != job.request_id:
            raise ProtocolError(f"hand-off of request {job.request_id}, which no step has finished")
        if not self._refuses(job, [Peer("decode", job.decode_rank)]):
            self._post_all(self._handoffs.begin(job, final_hidden))

    def _submit_stop(self, job: StopJob) -> None:
        self._post_all(self._handoffs.stop(job.job_id))

    def _submit_adopt(self, job: AdoptJob) -> None:
        peers = _prefill_peers([job.rank])
        if self._refuses(job, peers):
            return
        if self._steps.is_at(job.rank):
            raise ProtocolError(f"rank {job.rank} is to adopt epoch {job.epoch} in the middle of a step")
        record = self._geometry.begin(job)
        self._post_all(Posting(peer, record) for peer in peers)

    def _submit_copy(self, job: CopyJob) -> None:
        if not self._refuses(job, _prefill_peers(self._copies.participants(job))):
            self._post_all(self._copies.begin(job))

    def _post_all(self, postings: Iterable[Posting]) -> None:
        for peer, body in postings:
            self._pool.send(peer, body)

    def _happening(self) -> InputFact | AnyOutcome | None:
        """Return what is due, else what was taken in; a timer comes after all that had arrived by then."""
        told: InputFact | AnyOutcome | None = self._agenda.take(self.now()) if self._late is None else None
        if isinstance(told, TimerFired):
            # as in `liveness`: a coordinator that was away must not blame ranks whose answer is here
            self._take_arrived()
            self._ready.append(told)
            self._late, told = told, None
        if told is None and self._ready:
            told = self._ready.popleft()
            if told is self._late:
                self._late = None
        return told

    # ---- what ranks tell ------------------------------------------------------------------------

    def _take_arrived(self) -> None:
        for event in self._pool.events():
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, Lost):
            self._on_lost(event.peer, event.reason)
        else:
            self._take_received(event)

    def _take_received(self, received: Received) -> None:
        take = self._take_message.get(type(received.body))
        if take is None:
            raise ProtocolError(f"{received.peer} sent {type(received.body).__name__} in the middle of a run")
        take(received.peer, received.body)

    def _on_step_answer(self, peer: Peer, answer: StepDone | StepFailed) -> None:
        result = self._steps.answer(peer.rank, answer)
        if result is not None:
            self._tell_step(result)

    def _tell_step(self, result: StepResult) -> None:
        job_id = result.job.job_id
        self.last_step = result
        if result.failure is not None:
            self._tell_error(job_id, result.failure)
            return
        for work in result.job.works:
            self._final_hidden[work.slots[-1]] = (work.request_id, result.final_hidden[work.request_id])
        self._ready.append(jobs.StepDone(_UNDELIVERED, job_id, result.compute_ns))

    def _tell_error(self, job_id: JobId, reason: str) -> None:
        self._ready.append(JobError(_UNDELIVERED, job_id, reason))

    def _on_adopted(self, peer: Peer, adopted: Adopted) -> None:
        self._geometry.acknowledge(peer.rank, adopted.job_id)
        self._ready.append(jobs.Adopted(_UNDELIVERED, adopted.job_id))

    def _on_copied(self, peer: Peer, copied: Copied) -> None:
        self._tell_copy(self._copies.copied(copied.job_id, peer.rank, copied.wire_ns))

    def _on_inspected(self, peer: Peer, told: Inspected) -> None:
        self._inspection.answered(peer.rank, told)

    def _on_transfer_failed(self, peer: Peer, failed: TransferFailed) -> None:
        if self._handoffs.transfer_failed(failed.job_id, peer) is not None:
            self._tell_error(failed.job_id, f"{peer}: {failed.reason}")
        if peer.pool == "prefill":
            self._tell_copy(self._copies.failed(failed.job_id, peer.rank, failed.reason))

    def _tell_copy(self, result: CopyResult | None) -> None:
        if result is None:
            return
        if result.failure is not None:
            self._tell_error(result.job_id, result.failure)
            return
        payload_bytes = result.blocks * self.plan.block_bytes
        self._ready.append(jobs.CopyDone(_UNDELIVERED, result.job_id, payload_bytes, result.wire_ns))

    def _on_transfer_done(self, peer: Peer, done: TransferDone) -> None:
        self._post_all(self._handoffs.arrived(done.job_id, peer))

    def _on_handoff_done(self, peer: Peer, done: HandoffDone) -> None:
        if self._handoffs.find(done.job_id) is not None:
            self._ready.append(jobs.HandoffDone(_UNDELIVERED, done.job_id))

    def _on_handoff_failed(self, peer: Peer, failed: HandoffFailed) -> None:
        self._fail_handoff(failed.job_id, f"{peer}: {failed.reason}")

    def _fail_handoff(self, job_id: int, reason: str) -> None:
        if self._handoffs.end(job_id) is not None:
            self._tell_error(job_id, reason)

    def _on_decoded(self, peer: Peer, decoded: Decoded) -> None:
        for job_id, token in zip(decoded.job_ids, decoded.tokens, strict=True):
            handoff = self._handoffs.find(job_id)
            if handoff is None:
                continue
            handoff.output_tokens += 1
            self.on_tokens(handoff.job.request_id, (token,))
            if handoff.output_tokens == 1:
                self._ready.append(jobs.FirstToken(_UNDELIVERED, job_id))

    def _on_ended(self, peer: Peer, ended: Ended) -> None:
        if self._handoffs.end(ended.job_id) is not None:
            self._ready.append(jobs.DecodeDone(_UNDELIVERED, ended.job_id, ended.output_tokens))

    def _on_lost(self, peer: Peer, reason: str) -> None:
        lost = RankLost if peer.pool == "prefill" else DecodeRankLost
        self._ready.append(lost(_UNDELIVERED, peer.rank, INCARNATION, reason))
        if peer.pool == "prefill":
            self._lose_prefill_work(peer.rank, reason)
        for job_id in self._handoffs.hit_by_loss(peer):
            self._fail_handoff(job_id, f"{peer} lost: {reason}")

    def _lose_prefill_work(self, rank: Rank, reason: str) -> None:
        self._inspection.lose(rank)
        for result in self._steps.lose(rank, reason):
            self._tell_step(result)
        for copy in self._copies.lose(rank, reason):
            self._tell_copy(copy)
        unadopted = self._geometry.lose(rank)
        if unadopted is not None:
            self._tell_error(unadopted, f"rank {rank} lost: {reason}")


def _prefill_peers(ranks: Iterable[Rank]) -> list[Peer]:
    return [Peer("prefill", rank) for rank in ranks]


def _nothing() -> None:
    """What is done before a wait unless somebody asks for more."""
