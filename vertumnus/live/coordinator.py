"""The coordinator of the live protocol: jobs become messages, answers become outcomes (sec. 8).

It is the only one that talks to ranks, one ordered stream each. A rank that is gone becomes a fact, and an
error of every job that cannot go on without it. What a job is at between its first message and its outcome is
in a book of its kind: steps, hand-offs, copies, geometry.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from vertumnus.domain import jobs
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.facts import DecodeRankLost, InputFact, RankLost
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
from vertumnus.domain.units import Epoch, JobId, Nanoseconds, Rank, RequestId, SlotId
from vertumnus.domain.wording import counted
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
from vertumnus.live.rank_pool import INCARNATION, Event, Lost, RankPool
from vertumnus.live.steps import StepBook, StepResult

UNDELIVERED: Nanoseconds = 0
"""Stands in ``at`` until the moment of delivery."""

PromptLookup: TypeAlias = Callable[[RequestId], NDArray[np.integer[Any]]]
"""Returns a request's token ids, shape (L,)."""

TokenSink: TypeAlias = Callable[[RequestId, tuple[int, ...]], None]
"""Takes the tokens that a request has just produced; called between two facts, never beside one."""


class Client(Struct):
    """Whose tokens these are: facts and jobs carry none."""

    prompts: PromptLookup
    on_tokens: TokenSink


class Coordinator:
    """What the ranks of a run are at."""

    def __init__(
        self,
        plan: LivePlan,
        pool: RankPool,
        client: Client,
        first_epoch: Epoch,
        tell: Callable[[InputFact | AnyOutcome], object],
    ) -> None:
        """Talk to the ranks of *pool*, which begin as the plan's workers in *first_epoch*.

        *tell* takes what comes of jobs and ranks, in order, `UNDELIVERED`.
        """
        self.last_step: StepResult | None = None
        """What the ranks measured in the step told last."""
        self._plan = plan
        self._pool = pool
        self._client = client
        self._tell = tell
        self._steps = StepBook()
        self._geometry = Geometry(plan.lattice, plan.workers, first_epoch)
        by_transfer = plan.transport == "pairwise"
        self._handoffs = HandoffBook(plan.blocks_per_rank, by_transfer=by_transfer)
        self._copies = CopyBook(plan.lattice.gpus, plan.blocks_per_rank, by_transfer=by_transfer)
        self._inspection = Inspection((), plan.blocks_per_rank)
        # by the slot of the prompt's last block: bounded by the slots, whatever becomes of requests
        self._final_hidden: dict[SlotId, tuple[RequestId, bytes]] = {}
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

    @property
    def is_awaiting(self) -> bool:
        """Whether the outcome of a job is still to come."""
        under_way = len(self._handoffs) + len(self._copies) + len(self._geometry)
        return bool(self._steps.awaited or under_way)

    def submit(self, job: AnyJob) -> None:
        """Start *job*. Raises ProtocolError for one that cannot follow the jobs before it."""
        self._submit[type(job)](job)

    def take_arrived(self) -> None:
        """Take in what has arrived, without waiting."""
        for event in self._pool.events():
            self._take(event)

    def inspect(self, slots: Iterable[SlotId]) -> Inspection:
        """Ask the ranks that are up what lies in *slots*; `take_arrived` takes the answers."""
        inspection = self._inspection = Inspection(slots, self._plan.blocks_per_rank)
        for posting in list(inspection.postings()):
            if self._pool.is_up(posting.peer.process):
                self._pool.send(posting.peer, posting.body)
            else:
                inspection.lose(posting.peer.rank)
        return inspection

    # ---- jobs -----------------------------------------------------------------------------------

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
        prompt = self._client.prompts(work.request_id)
        if len(prompt) != work.input_tokens:
            raise ProtocolError(
                f"request {work.request_id}: a prompt of {counted(len(prompt), 'token')}, a step of "
                f"{work.input_tokens}"
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

    # ---- what ranks tell ------------------------------------------------------------------------

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
        self._tell(jobs.StepDone(UNDELIVERED, job_id, result.compute_ns))

    def _tell_error(self, job_id: JobId, reason: str) -> None:
        self._tell(JobError(UNDELIVERED, job_id, reason))

    def _on_adopted(self, peer: Peer, adopted: Adopted) -> None:
        self._geometry.acknowledge(peer.rank, adopted.job_id)
        self._tell(jobs.Adopted(UNDELIVERED, adopted.job_id))

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
        payload_bytes = result.blocks * self._plan.block_bytes
        self._tell(jobs.CopyDone(UNDELIVERED, result.job_id, payload_bytes, result.wire_ns))

    def _on_transfer_done(self, peer: Peer, done: TransferDone) -> None:
        self._post_all(self._handoffs.arrived(done.job_id, peer))

    def _on_handoff_done(self, peer: Peer, done: HandoffDone) -> None:
        if self._handoffs.find(done.job_id) is not None:
            self._tell(jobs.HandoffDone(UNDELIVERED, done.job_id))

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
            self._client.on_tokens(handoff.job.request_id, (token,))
            if handoff.output_tokens == 1:
                self._tell(jobs.FirstToken(UNDELIVERED, job_id))

    def _on_ended(self, peer: Peer, ended: Ended) -> None:
        if self._handoffs.end(ended.job_id) is not None:
            self._tell(jobs.DecodeDone(UNDELIVERED, ended.job_id, ended.output_tokens))

    def _on_lost(self, peer: Peer, reason: str) -> None:
        lost = RankLost if peer.pool == "prefill" else DecodeRankLost
        self._tell(lost(UNDELIVERED, peer.rank, INCARNATION, reason))
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
