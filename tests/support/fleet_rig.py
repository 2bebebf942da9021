"""A fleet driven event by event: orders and outcomes go in by hand, its books are checked after each."""

from typing import TypeVar

from tests.support.builders import BLOCK_TOKENS, a_cluster
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import (
    DecodeRankLost,
    DerivedFact,
    InputFact,
    RankLost,
    RequestArrived,
    RequestEnded,
)
from vertumnus.domain.jobs import (
    AnyJob,
    AnyOutcome,
    DecodeDone,
    FirstToken,
    HandoffDone,
    HandoffJob,
    JobError,
    StepDone,
    StepJob,
)
from vertumnus.domain.orders import AnyOrder, Cancel, Prefill, Reject
from vertumnus.domain.request import Request
from vertumnus.workers.config import ClusterConfig
from vertumnus.workers.fleet import Effects, Fleet
from vertumnus.workers.worker import Worker

PAIR, LEFT, RIGHT = CpGroup(0, 2), CpGroup(2, 1), CpGroup(3, 1)
"""The workers of `a_cluster`: one of degree 2, two of degree 1."""

Body = TypeVar("Body")


class FleetRig:
    """The fleet of `a_cluster` and everything that it said; the clock goes up by 1 ns an event."""

    def __init__(self, cluster: ClusterConfig | None = None) -> None:
        self.fleet = Fleet(cluster or a_cluster(), BLOCK_TOKENS)
        self.now = 0
        self.facts: list[DerivedFact] = []
        self.jobs: list[AnyJob] = []

    # ---- events in

    def place(
        self, request: Request, worker: CpGroup = LEFT, *, attempt: int = 0, after: tuple[int, ...] = ()
    ) -> list[DerivedFact]:
        """Let *request* arrive, unless it is here already, and place it, first come, first served."""
        if attempt == 0:
            self.note(RequestArrived(self.now, request))
        number = request.request_id
        return self.order(Prefill(number, attempt, worker, request.arrival_ns, after, 1_000, 0))

    def cancel(self, request_id: int) -> list[DerivedFact]:
        """Carry out a Cancel."""
        return self.order(Cancel(request_id))

    def reject(self, request_id: int) -> list[DerivedFact]:
        """Carry out a Reject."""
        return self.order(Reject(request_id, "rejected", "no room"))

    def finish_step(self, worker: CpGroup = LEFT) -> list[DerivedFact]:
        """End the step that *worker* runs."""
        return self.conclude(StepDone(self.now, self.step_of(worker).job_id, 7))

    def copy_done(self, request_id: int) -> list[DerivedFact]:
        """The decode rank has the request's KV."""
        return self.conclude(HandoffDone(self.now, self.handoff_of(request_id).job_id))

    def first_token(self, request_id: int) -> list[DerivedFact]:
        """The decode rank emits the first token."""
        return self.conclude(FirstToken(self.now, self.handoff_of(request_id).job_id))

    def decoded(self, request_id: int, tokens: int = 4) -> list[DerivedFact]:
        """The output is complete after *tokens*."""
        return self.conclude(DecodeDone(self.now, self.handoff_of(request_id).job_id, tokens))

    def hand_off(self, request_id: int) -> list[DerivedFact]:
        """Copy, first token and the whole output."""
        return [*self.copy_done(request_id), *self.first_token(request_id), *self.decoded(request_id)]

    def break_job(self, job_id: int) -> list[DerivedFact]:
        """End a job without a result."""
        return self.conclude(JobError(self.now, job_id, "torn"))

    def lose_rank(self, rank: int) -> list[DerivedFact]:
        """A prefill rank dies."""
        return self.note(RankLost(self.now, rank, 0, "killed"))

    def lose_decode_rank(self, rank: int) -> list[DerivedFact]:
        """A decode rank dies."""
        return self.note(DecodeRankLost(self.now, rank, 0, "killed"))

    def note(self, fact: InputFact) -> list[DerivedFact]:
        """Give the fleet an input; return the facts that follow."""
        return self._take(self.fleet.note(fact))

    def order(self, order: AnyOrder) -> list[DerivedFact]:
        """Give the fleet an order; return the facts that follow."""
        return self._take(self.fleet.carry_out(order, self.now))

    def conclude(self, outcome: AnyOutcome) -> list[DerivedFact]:
        """Give the fleet an outcome; return the facts that follow."""
        return self._take(self.fleet.conclude(outcome))

    def _take(self, effects: Effects) -> list[DerivedFact]:
        self.now += 1
        self.facts += effects.facts
        self.jobs += effects.jobs
        self.fleet.check()
        return effects.facts

    # ---- what was said

    def worker(self, group: CpGroup = LEFT) -> Worker:
        """Return the worker's books."""
        return self.fleet.workers[group]

    def step_of(self, worker: CpGroup = LEFT) -> StepJob:
        """Return the last step that *worker* was given."""
        return [job for job in self.told(StepJob) if job.worker == worker][-1]

    def handoff_of(self, request_id: int) -> HandoffJob:
        """Return the request's last hand-off job."""
        return [job for job in self.told(HandoffJob) if job.request_id == request_id][-1]

    def told(self, kind: type[Body]) -> list[Body]:
        """Return every fact or job of one type so far."""
        return [body for body in (*self.facts, *self.jobs) if type(body) is kind]


def kinds(facts: list[DerivedFact]) -> list[str]:
    """Return the names of *facts*, in order."""
    return [type(fact).__name__ for fact in facts]


def the_end(rig: FleetRig, request_id: int = 0) -> RequestEnded:
    """Return the request's only terminal fact."""
    (end,) = [fact for fact in rig.told(RequestEnded) if fact.request_id == request_id]
    return end


def assert_settled(rig: FleetRig) -> None:
    """Nothing is pinned, reserved or decoding any more."""
    books = rig.fleet.books()
    assert (books.pinned_blocks, books.decode_slots) == (0, 0)
    assert books.blocks_in_use == books.blocks_held
    assert not rig.fleet.is_busy
