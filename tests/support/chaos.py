"""An engine that takes random times, fails jobs and loses ranks, all from one seed."""

from heapq import heappop, heappush
from random import Random

from msgspec.structs import replace

from vertumnus.domain.facts import DecodeRankLost, InputFact, RankLost, RequestArrived, RequestCancelled
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
    StopJob,
)


class ChaosEngine:
    """Virtual time with trouble: every probability is per job."""

    def __init__(
        self,
        seed: int,
        step_error: float = 0.0,
        handoff_error: float = 0.0,
        cancel: float = 0.0,
        lost_ack: float = 0.0,
        decode_ns: int = 1,
    ) -> None:
        """*decode_ns*: from the end of a copy to a decode rank to the first token there."""
        self._random = Random(seed)
        self._step_error, self._handoff_error, self._cancel = step_error, handoff_error, cancel
        self._lost_ack, self._decode_ns = lost_ack, decode_ns
        self._heap: list[tuple[int, int, InputFact | AnyOutcome]] = []
        self._now = self._sequence = 0
        self.stale: list[AnyOutcome] = []
        """Outcomes that were delivered already; some are delivered again."""

    def now(self) -> int:
        return self._now

    def schedule(self, fact: InputFact, at_ns: int) -> None:
        at_ns = max(at_ns, self._now)
        self._push(replace(fact, at=at_ns), at_ns)
        if type(fact) is RequestArrived and self._random.random() < self._cancel:
            when = at_ns + self._random.randrange(200_000_000)
            self._push(RequestCancelled(when, fact.request.request_id, "client"), when)

    def lose_rank(self, rank: int, at_ns: int) -> None:
        self._push(RankLost(at_ns, rank, 0, "killed"), at_ns)

    def lose_decode_rank(self, rank: int, at_ns: int) -> None:
        self._push(DecodeRankLost(at_ns, rank, 0, "killed"), at_ns)

    def submit(self, job: AnyJob) -> None:
        at = self._now + self._random.randrange(1, 50_000_000)
        if type(job) is StepJob:
            failed = self._random.random() < self._step_error
            self._push(JobError(at, job.job_id, "broken") if failed else StepDone(at, job.job_id, 7), at)
        elif type(job) is HandoffJob:
            self._hand_off(job, at)
        elif type(job) is CopyJob:
            failed = self._random.random() < self._handoff_error
            done = JobError(at, job.job_id, "torn") if failed else CopyDone(at, job.job_id, 64, 9)
            self._push(done, at)
        elif type(job) is AdoptJob:
            if self._random.random() >= self._lost_ack:
                self._push(Adopted(at, job.job_id), at)
        elif type(job) is StopJob:
            self._push(DecodeDone(at, job.job_id, 0), at)

    def _hand_off(self, job: HandoffJob, at: int) -> None:
        stages: list[AnyOutcome] = [
            HandoffDone(at, job.job_id),
            FirstToken(at + self._decode_ns, job.job_id),
            DecodeDone(
                at + self._decode_ns + self._random.randrange(30_000_000), job.job_id, job.output_tokens
            ),
        ]
        if self._random.random() < self._handoff_error:
            cut = self._random.randrange(3)
            stages[cut:] = [JobError(stages[cut].at, job.job_id, "torn")]
        for outcome in stages:
            self._push(outcome, outcome.at)

    def next(self) -> InputFact | AnyOutcome | None:
        if self.stale and self._random.random() < 0.02:
            return replace(self._random.choice(self.stale), at=self._now)
        if not self._heap:
            return None
        self._now, _, body = heappop(self._heap)
        if isinstance(body, StepDone | HandoffDone | FirstToken | DecodeDone | JobError):
            self.stale.append(body)
        return body

    def post(self, fact: InputFact) -> None:
        self.schedule(fact, self._now)

    def close(self) -> None:
        return

    def _push(self, body: InputFact | AnyOutcome, at: int) -> None:
        self._sequence += 1
        heappush(self._heap, (at, self._sequence, body))
