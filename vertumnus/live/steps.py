"""Steps under way: one message out for each rank of a worker, one outcome back for all of them.

Rules: a rank has one step at a time, and its next one, of whatever worker, starts after every rank of
this one has answered. A rank that is lost ends its step at once; the survivors' late answers then close
it without another outcome.
"""

from collections.abc import Iterator
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.jobs import StepJob
from vertumnus.domain.units import JobId, Nanoseconds, Rank, RequestId
from vertumnus.live.messages import StepDone, StepFailed


class StepResult(NamedTuple):
    """What all ranks together made of a step."""

    job: StepJob
    failure: str | None
    """Why there is no result; the numbers below mean nothing then."""
    compute_ns: Nanoseconds
    """Of the slowest rank."""
    cpu_ns: Nanoseconds
    """CPU time of all ranks together."""
    final_hidden: dict[RequestId, bytes]
    """Hidden state at each prompt's last position."""


class _OpenStep:
    """A step that not every rank has answered."""

    def __init__(self, job: StepJob) -> None:
        self.job = job
        self.silent = set(job.worker.ranks)
        self.failures: list[str] = []
        self.is_told = False
        self.compute_ns = self.cpu_ns = 0
        self.final_hidden: dict[RequestId, bytes] = {}

    def add(self, answer: StepDone) -> None:
        self.compute_ns = max(self.compute_ns, answer.compute_ns)
        self.cpu_ns += answer.cpu_ns
        for work, hidden in zip(self.job.works, answer.final_hidden, strict=True):
            if hidden is not None:
                self.final_hidden[work.request_id] = hidden

    def result(self) -> StepResult:
        failure = "; ".join(self.failures) or None
        return StepResult(self.job, failure, self.compute_ns, self.cpu_ns, self.final_hidden)


class StepBook:
    """The open step of each worker."""

    def __init__(self) -> None:
        self._open: dict[CpGroup, _OpenStep] = {}
        self._failed_groups: dict[CpGroup, int] = {}

    @property
    def awaited(self) -> bool:
        """Whether an outcome is still to come."""
        return any(not step.is_told for step in self._open.values())

    def is_at(self, rank: Rank) -> bool:
        """Return whether *rank* belongs to a step that is not over, told or not."""
        return any(rank in step.job.worker.ranks for step in self._open.values())

    def begin(self, job: StepJob) -> int:
        """Note that *job* goes to its ranks; return the generation of the group that it uses.

        Raises ProtocolError when a step is not over at one of its ranks.
        """
        for rank in job.worker.ranks:
            if self.is_at(rank):
                raise ProtocolError(f"worker {job.worker} got step {job.job_id} in the middle of another one")
        self._open[job.worker] = _OpenStep(job)
        return self._failed_groups.get(job.worker, 0)

    def answer(self, rank: Rank, answer: StepDone | StepFailed) -> StepResult | None:
        """Take one rank's answer; return the result when it was the last one, and not told before."""
        step = self._awaiting(rank, answer.job_id)
        if isinstance(answer, StepFailed):
            step.failures.append(f"rank {rank}: {answer.reason}")
        else:
            step.add(answer)
        return self._settle(step, rank)

    def lose(self, rank: Rank, reason: str) -> Iterator[StepResult]:
        """Take *rank* out of its open step, and yield that step's failure unless it was told."""
        for step in list(self._open.values()):
            if rank in step.silent:
                step.failures.append(f"rank {rank} lost: {reason}")
                told, step.is_told = step.is_told, True
                self._settle(step, rank)
                if not told:
                    yield step.result()

    def _awaiting(self, rank: Rank, job_id: JobId) -> _OpenStep:
        for step in self._open.values():
            if step.job.job_id == job_id and rank in step.silent:
                return step
        raise ProtocolError(f"rank {rank} answered step {job_id}, which it does not owe")

    def _settle(self, step: _OpenStep, rank: Rank) -> StepResult | None:
        step.silent.discard(rank)
        if step.silent:
            return None
        del self._open[step.job.worker]
        if step.failures:  # its group may be dead: the next step meets under a new prefix
            self._failed_groups[step.job.worker] = self._failed_groups.get(step.job.worker, 0) + 1
        return None if step.is_told else step.result()
