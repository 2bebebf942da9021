"""A loop whose engine is the test: jobs wait until it says what becomes of them; audited after each event."""

from typing import TypeVar

from tests.support.builders import BLOCK_TOKENS, a_control_plane
from tests.support.queues import assert_queues_mirrored
from vertumnus.domain.codec import Body, Record
from vertumnus.domain.facts import InputFact, RequestArrived
from vertumnus.domain.jobs import AnyJob, AnyOutcome, DecodeDone, FirstToken, HandoffDone, HandoffJob, StepJob
from vertumnus.domain.request import Request
from vertumnus.policy.config import PolicyConfig
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.serving.loop import Loop
from vertumnus.serving.silent import SilentEngine
from vertumnus.workers.config import ClusterConfig
from vertumnus.workers.fleet import Fleet

Told = TypeVar("Told")


class ByHand(SilentEngine):
    """A pool and everything that it said; also the engine, which does nothing by itself."""

    def __init__(self, cluster: ClusterConfig, policy: PolicyConfig) -> None:
        self._cluster, self._policy = cluster, policy
        self.fleet, self.control = self.fresh()
        self.records: list[Record] = []
        self.jobs: list[AnyJob] = []
        self.now_ns = 0
        self._loop = Loop(self, self.fleet, self.control, self._record)
        self._loop.start()

    def fresh(self) -> tuple[Fleet, ControlPlane]:
        """Return fleet and control plane as they are before the first event."""
        return Fleet(self._cluster, BLOCK_TOKENS), a_control_plane(self._cluster, self._policy)

    # ---- events in

    def arrive(self, request: Request) -> None:
        """Let *request* arrive now."""
        self.take(RequestArrived(self.now_ns, request))

    def step(self) -> StepJob:
        """Return the step that was given out last."""
        return [job for job in self.jobs if isinstance(job, StepJob)][-1]

    def hand_off(self, request_id: int) -> None:
        """Copy, first token and output of *request_id*."""
        copies = [job for job in self.jobs if isinstance(job, HandoffJob)]
        job = [each for each in copies if each.request_id == request_id][-1]
        self.take(HandoffDone(self.now_ns, job.job_id))
        self.take(FirstToken(self.now_ns, job.job_id))
        self.take(DecodeDone(self.now_ns, job.job_id, job.output_tokens))

    def take(self, event: InputFact | AnyOutcome) -> None:
        """Deliver one event."""
        self._loop.take(event)
        self.fleet.check()
        self.control.check()
        assert_queues_mirrored(self.fleet, self.control)

    # ---- what was said

    def told(self, kind: type[Told]) -> list[Told]:
        """Return every input, fact and order of one type so far."""
        return [record.body for record in self.records if isinstance(record.body, kind)]

    def _record(self, source: int, body: Body) -> None:
        self.records.append(Record(source, body))

    # ---- the engine

    def now(self) -> int:
        return self.now_ns

    def submit(self, job: AnyJob) -> None:
        self.jobs.append(job)
