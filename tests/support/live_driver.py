"""Drives a live engine without policy code: steps and hand-offs are submitted by the test itself."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.jobs import (
    Adopted,
    AdoptJob,
    AnyOutcome,
    CopyDone,
    CopyJob,
    DecodeDone,
    HandoffDone,
    HandoffJob,
    JobError,
    StepDone,
    StepJob,
    StepWork,
)
from vertumnus.domain.units import Epoch, JobId, Rank, RequestId, SlotId, Tokens
from vertumnus.live.config import MODEL_PRESETS, LiveConfig
from vertumnus.live.engine import LiveEngine
from vertumnus.live.plan import LivePlan, make_plan
from vertumnus.live.rank_pool import FIRST_EPOCH
from vertumnus.workers.config import ClusterConfig, DecodeConfig

MODEL = MODEL_PRESETS["nano"]
SEED = 7
BLOCK_TOKENS = 16
BLOCKS_PER_RANK = 128
TOLERANCE = 2e-5
"""Two ways of computing one hidden state differ by less; a wrong block shows by more than `SHOWS`."""
SHOWS = 1e-2
ENDLESS = 30_000
"""Output tokens of a sequence that something else ends: decoding so many takes half a minute and more."""
PAIR, LEFT, RIGHT = CpGroup(0, 2), CpGroup(2, 1), CpGroup(3, 1)
"""The workers of `a_cluster`: one of degree 2, two of degree 1."""


def a_cluster(
    composition: Mapping[int, int] | None = None,
    decode_ranks: int = 1,
    blocks_per_rank: int = BLOCKS_PER_RANK,
) -> ClusterConfig:
    """A small pool; by default one degree-2 worker beside two degree-1 workers."""
    counts = dict(composition or {2: 1, 1: 2})
    return ClusterConfig(
        gpus=sum(degree * count for degree, count in counts.items()),
        degrees=(1, 2, 4),
        composition=counts,
        ranks_per_node=4,
        blocks_per_rank=blocks_per_rank,
        decode=DecodeConfig(ranks=decode_ranks, slots_per_rank=8, tokens_per_rank=4_096),
    )


def a_plan(cluster: ClusterConfig | None = None, **live: object) -> LivePlan:
    """A plan for the nano model with seeded weights."""
    settings = LiveConfig(device="cpu", **{"step_timeout_s": 60.0, "start_timeout_s": 300.0, **live})  # type: ignore[arg-type]
    return make_plan(MODEL, settings, cluster or a_cluster(), BLOCK_TOKENS, SEED)


class Driver:
    """Submits jobs, collects what the engine tells, and keeps the tokens of each request."""

    def __init__(self, plan: LivePlan, first_epoch: Epoch = FIRST_EPOCH) -> None:
        self.prompts: dict[RequestId, np.ndarray] = {}
        self.tokens: dict[RequestId, list[int]] = {}
        self.told: list[object] = []
        self.engine = LiveEngine(plan, self.prompts.__getitem__, self._take_tokens, first_epoch)
        self._plan = plan
        self._last_job: JobId = 0
        self._used: dict[Rank, int] = {}
        self._last_epoch: Epoch = 0
        self._epochs = dict.fromkeys(range(plan.lattice.gpus), 0)

    def prompt(self, input_tokens: Tokens, *, like: RequestId | None = None, shared: Tokens = 0) -> RequestId:
        """Make up a prompt, its first *shared* tokens those of request *like*; return its request."""
        request_id = len(self.prompts)
        ids = np.random.default_rng(request_id).integers(0, self._plan.model.vocab_size, input_tokens)
        if like is not None:
            ids[:shared] = self.prompts[like][:shared]
        self.prompts[request_id] = ids
        return request_id

    def slots(self, worker: CpGroup, input_tokens: Tokens, first: int = 0) -> tuple[SlotId, ...]:
        """Return fresh slots for the blocks from *first* on, interleaved over the worker's ranks."""
        blocks = range(first, -(-input_tokens // BLOCK_TOKENS))
        return tuple(self.slot(worker.first_rank + block % worker.degree) for block in blocks)

    def step(
        self,
        worker: CpGroup,
        request: RequestId,
        *,
        reused: tuple[SlotId, ...] = (),
        epoch: Epoch | None = None,
    ) -> StepJob:
        """Submit a step of one request whose first blocks lie in *reused*; under the worker's epoch."""
        input_tokens = len(self.prompts[request])
        slots = reused + self.slots(worker, input_tokens, first=len(reused))
        work = StepWork(request, 0, input_tokens, len(reused) * BLOCK_TOKENS, slots)
        epoch = self._epochs[worker.first_rank] if epoch is None else epoch
        job = StepJob(self.new_job(), worker, epoch, (work,))
        self.engine.submit(job)
        return job

    def final_state(self, step: StepJob) -> np.ndarray:
        """Return the final hidden state of a finished step's only prompt, before its slots are reused."""
        (work,) = step.works
        request, state = self.engine._coordinator._final_hidden[work.slots[-1]]
        assert request == work.request_id
        return np.frombuffer(state, dtype="<f4")

    def departure(self, worker: CpGroup, request: RequestId, reused: tuple[SlotId, ...]) -> float:
        """Return how far a prompt's final state behind *reused* blocks is from that without, at most."""
        states = []
        for slots in (reused, ()):
            step = self.step(worker, request, reused=slots)
            self.finish_step(step)
            states.append(self.final_state(step))
        return float(np.abs(states[0] - states[1]).max())

    def begin_adopt(self, *workers: CpGroup) -> list[AdoptJob]:
        """Submit the jobs that tell the ranks of *workers* a new epoch."""
        self._last_epoch += 1
        told = [
            AdoptJob(self.new_job(), rank, worker, self._last_epoch)
            for worker in workers
            for rank in worker.ranks
        ]
        for job in told:
            self.engine.submit(job)
            self._epochs[job.rank] = job.epoch
        return told

    def adopt(self, *workers: CpGroup) -> None:
        """Form *workers* under a new epoch; return when every rank has acknowledged it."""
        for job in self.begin_adopt(*workers):
            adopted = self.outcome(job.job_id, Adopted)
            assert isinstance(adopted, Adopted), adopted

    def copy(self, worker: CpGroup, moves: Sequence[tuple[SlotId, SlotId]]) -> CopyJob:
        """Submit a copy to *worker*, each move from a slot to a slot."""
        sources = dict.fromkeys(self._plan.worker_of(slot // self._plan.blocks_per_rank) for slot, _ in moves)
        job = CopyJob(self.new_job(), worker, tuple(moves), tuple(sources))
        self.engine.submit(job)
        return job

    def finish_copying(self, job: CopyJob) -> CopyDone:
        """Wait until every block of a copy is there; fail when it ends in an error."""
        outcome = self.outcome(job.job_id, CopyDone)
        assert isinstance(outcome, CopyDone), outcome
        return outcome

    def block_bytes(self, slot: SlotId) -> bytes:
        """Return what lies in a slot of a shared map."""
        rank, local = divmod(slot, self._plan.blocks_per_rank)
        size = self._plan.block_bytes
        return os.pread(self.engine._pool._maps[rank].fileno(), size, local * size)

    def hand_off(self, step: StepJob, output_tokens: Tokens, decode_rank: Rank = 0) -> HandoffJob:
        """Submit the hand-off of a finished step's only request."""
        (work,) = step.works
        return self.hand_off_work(step.worker, work, output_tokens, decode_rank)

    def hand_off_work(
        self, worker: CpGroup, work: StepWork, output_tokens: Tokens, decode_rank: Rank = 0
    ) -> HandoffJob:
        """Submit the hand-off of one request of a finished step."""
        job = HandoffJob(
            self.new_job(),
            work.request_id,
            0,
            worker,
            decode_rank,
            work.input_tokens,
            output_tokens,
            work.slots,
        )
        self.engine.submit(job)
        return job

    def until(self, seen: Callable[[object], bool]) -> object:
        """Take what comes next until *seen* holds for it, and return that."""
        while True:
            told = self.engine.next()
            assert told is not None, "the engine has nothing under way"
            self.told.append(told)
            if seen(told):
                return told

    def outcome(self, job_id: JobId, *kinds: type) -> AnyOutcome:
        """Wait for an outcome of a job, of one of *kinds*; any error is one of them."""
        wanted = (*kinds, JobError)
        for told in self.told:
            if isinstance(told, wanted) and told.job_id == job_id:
                return told
        return self.until(lambda told: isinstance(told, wanted) and told.job_id == job_id)  # type: ignore[return-value]

    def finish_step(self, job: StepJob) -> StepDone:
        """Wait until a step is done; fail when it ends in an error."""
        outcome = self.outcome(job.job_id, StepDone)
        assert isinstance(outcome, StepDone), outcome
        return outcome

    def finish(self, job: HandoffJob) -> list[int]:
        """Wait until a hand-off's output is complete and return it."""
        outcome = self.outcome(job.job_id, DecodeDone)
        assert isinstance(outcome, DecodeDone), outcome
        return self.tokens[job.request_id]

    def finish_copy(self, job: HandoffJob) -> None:
        """Wait until a hand-off's KV is at its decode rank."""
        assert isinstance(self.outcome(job.job_id, HandoffDone), HandoffDone)

    def generate(
        self,
        worker: CpGroup,
        request: RequestId,
        output_tokens: Tokens,
        reused: tuple[SlotId, ...] = (),
    ) -> list[int]:
        """Prefill, hand off and decode one request; return its output."""
        step = self.step(worker, request, reused=reused)
        self.finish_step(step)
        return self.finish(self.hand_off(step, output_tokens))

    def _take_tokens(self, request: RequestId, tokens: tuple[int, ...]) -> None:
        self.tokens.setdefault(request, []).extend(tokens)

    def new_job(self) -> JobId:
        """Return a job id that was not used before."""
        self._last_job += 1
        return self._last_job

    def slot(self, rank: Rank) -> SlotId:
        """Return a slot of *rank* that was not given out before."""
        used = self._used.get(rank, 0)
        assert used < self._plan.blocks_per_rank, "the test asks for more blocks than a rank has"
        self._used[rank] = used + 1
        return rank * self._plan.blocks_per_rank + used


@contextmanager
def running(plan: LivePlan, first_epoch: Epoch = FIRST_EPOCH) -> Iterator[Driver]:
    """Yield a driver whose engine is up, its clock started; everything is stopped afterwards."""
    driver = Driver(plan, first_epoch)
    try:
        driver.engine.start()
        driver.engine.start_clock()
        yield driver
    finally:
        driver.engine.close()
