"""Times single steps, hand-offs and decode steps on an idle engine: nothing queues, nothing overlaps.

The KV of a cached prefix is whatever lies in its slots: a time does not depend on it, and no cache
knows of it afterwards.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError, ProtocolError, VertumnusError
from vertumnus.domain.facts import DecodeRankLost, RankLost
from vertumnus.domain.jobs import (
    Adopted,
    AdoptJob,
    DecodeDone,
    FirstToken,
    HandoffDone,
    HandoffJob,
    JobError,
    Outcome,
    StepDone,
    StepJob,
    StepWork,
)
from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import SECOND, Epoch, JobId, RequestId, SlotId, Tokens
from vertumnus.domain.wording import counted
from vertumnus.live.engine import LiveEngine
from vertumnus.live.plan import LivePlan

DECODE_TOKENS = 16
"""Output of a timed sequence."""

_REQUEST: RequestId = -1
"""The only request here; a run counts its own from 0."""


class Point(NamedTuple):
    """A prefill to be timed."""

    worker: CpGroup
    uncached: Tokens
    cached: Tokens


class StepTiming(NamedTuple):
    """One prefill as the ranks measured it."""

    wall_s: float
    """Of the slowest rank."""
    cpu_per_rank_s: float


class TailTiming(NamedTuple):
    """What follows a prefill of this many tokens."""

    input_tokens: Tokens
    handoff_s: float
    """From the job to the decode rank's confirmation."""
    whole_s: float
    """From the job to the last of `DECODE_TOKENS` tokens."""


class Bench:
    """Runs one job at a time on an engine that has nothing else to do; forms the workers that it times."""

    def __init__(self, engine: LiveEngine, longest: Tokens) -> None:
        """Time prompts of up to *longest* tokens."""
        self._engine = engine
        self._last_job: JobId = 0
        self._epoch = engine.first_epoch
        self._formed = {
            rank: (worker, self._epoch) for worker in engine.plan.workers for rank in worker.ranks
        }
        self._ids = np.random.default_rng(0).integers(engine.plan.model.vocab_size, size=longest)

    def time_step(self, point: Point) -> StepTiming:
        """Run one prefill. Raises VertumnusError when it fails."""
        self._step(point)
        measured = self._engine.last_step
        assert measured is not None, "a step was just told"
        cpu_per_rank_s = measured.cpu_ns / point.worker.degree / SECOND
        return StepTiming(measured.compute_ns / SECOND, cpu_per_rank_s)

    def form(self, workers: Iterable[CpGroup], epoch: Epoch) -> None:
        """Have the ranks of *workers* adopt *epoch*. Raises VertumnusError when one does not."""
        told = [AdoptJob(self._job(), rank, worker, epoch) for worker in workers for rank in worker.ranks]
        for job in told:
            self._engine.submit(job)
        awaited = {job.job_id for job in told}
        while awaited:
            awaited.discard(self._next(Adopted).job_id)
        self._formed.update({job.rank: (job.worker, epoch) for job in told})
        self._epoch = epoch

    def time_tail(self, worker: CpGroup, input_tokens: Tokens) -> TailTiming:
        """Prefill a prompt, then time its hand-off and decoding. Raises VertumnusError on failure."""
        step = self._step(Point(worker, input_tokens, 0))
        slots = step.works[0].slots
        job = HandoffJob(self._job(), _REQUEST, 0, worker, 0, input_tokens, DECODE_TOKENS, slots)
        submitted = self._engine.now()
        self._engine.submit(job)
        copied, _, last = (self._await(job.job_id, kind).at for kind in (HandoffDone, FirstToken, DecodeDone))
        return TailTiming(input_tokens, (copied - submitted) / SECOND, (last - submitted) / SECOND)

    def _step(self, point: Point) -> StepJob:
        worker, uncached, cached = point
        prompt = self._ids[: uncached + cached]
        self._engine.client.prompts = lambda request_id: prompt
        work = StepWork(_REQUEST, 0, len(prompt), cached, slots_of(self._engine.plan, worker, len(prompt)))
        job = StepJob(self._job(), worker, self._epoch_of(worker), (work,))
        self._engine.submit(job)
        self._await(job.job_id, StepDone)
        return job

    def _epoch_of(self, worker: CpGroup) -> Epoch:
        """Return the epoch of *worker*, which is formed if its ranks are something else."""
        formed = {self._formed[rank] for rank in worker.ranks}
        if len(formed) > 1 or {group for group, _ in formed} != {worker}:
            self.form([worker], self._epoch + 1)
        return self._formed[worker.first_rank][1]

    def _await(self, job_id: JobId, kind: type[Outcome]) -> Outcome:
        told = self._next(kind)
        if told.job_id != job_id:
            raise ProtocolError(f"timing job {job_id}: got {told}")
        return told

    def _next(self, kind: type[Outcome]) -> Outcome:
        """Return the next thing told, which must be of *kind*."""
        told = self._engine.next()
        match told:
            case RankLost() | DecodeRankLost():
                pool = "prefill" if isinstance(told, RankLost) else "decode"
                raise VertumnusError(f"{pool} rank {told.rank} was lost while it was timed: {told.reason}")
            case JobError():
                raise VertumnusError(f"a timed job failed: {told.reason}")
            case Outcome() if isinstance(told, kind):
                return told
        raise ProtocolError(f"timing: expected {kind.__name__}, got {told}")

    def _job(self) -> JobId:
        self._last_job -= 1  # a run's jobs count up from 1
        return self._last_job


def points_of(plan: LivePlan) -> list[Point]:
    """Return what `backend.calibration.points` asks of one worker of each degree that the ranks can form.

    Where a degree is present it is a worker that is there. P is cut to whole blocks. Points that a worker
    cannot hold are left out; raises ConfigError when none is left.
    """
    workers = {group.degree: group for group in reversed(plan.lattice.groups())}
    workers.update({worker.degree: worker for worker in reversed(plan.workers)})
    points = [
        Point(workers[degree], uncached, cached - cached % plan.block_tokens)
        for degree in sorted(workers)
        for uncached, cached in plan.live.calibration.points
        if _fits(plan, degree, uncached + cached)
    ]
    if not points:
        raise ConfigError(
            f"backend.calibration.points: none of {list(plan.live.calibration.points)} fits a worker of "
            f"{counted(plan.blocks_per_rank, 'block')} a rank (cluster.blocks_per_rank) and a model of "
            f"{counted(plan.model.max_position, 'position')}"
        )
    return list(dict.fromkeys(points))


def slots_of(plan: LivePlan, worker: CpGroup, tokens: Tokens) -> tuple[SlotId, ...]:
    """Return the first slots of a worker's ranks for a prompt, block i on rank i mod C."""
    return tuple(
        (worker.first_rank + block % worker.degree) * plan.blocks_per_rank + block // worker.degree
        for block in range(blocks_for(tokens, plan.block_tokens))
    )


def _fits(plan: LivePlan, degree: int, tokens: Tokens) -> bool:
    blocks = blocks_for(tokens, plan.block_tokens)
    return blocks <= degree * plan.blocks_per_rank and tokens + DECODE_TOKENS <= plan.model.max_position
