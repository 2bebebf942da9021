"""Workers that go out of service: a rank died, a step broke, or a transition failed (sec. 6.2)."""

from vertumnus.domain.facts import RankLost, RequestsReturned
from vertumnus.domain.jobs import JobError
from vertumnus.domain.units import Nanoseconds
from vertumnus.workers.fleet_state import FleetState
from vertumnus.workers.handoffs import Handoffs
from vertumnus.workers.steps import Steps
from vertumnus.workers.worker import Worker


class Losses:
    """Takes workers out of service and gives their requests back, all but those past their copy."""

    def __init__(self, state: FleetState, steps: Steps, handoffs: Handoffs) -> None:
        self._state = state
        self._steps = steps
        self._handoffs = handoffs

    def rank_lost(self, fact: RankLost) -> None:
        """Lose the worker that the rank belongs to."""
        worker = self._state.worker_of_rank[fact.rank]
        self.lose(worker, fact.at, f"rank {fact.rank} lost: {fact.reason}")

    def step_failed(self, outcome: JobError) -> bool:
        """Lose the worker whose step broke; return whether the job is a step."""
        worker = self._steps.worker_of(outcome.job_id)
        if worker is None:
            return False
        # its group may be stuck in a collective: out of service until a new epoch (sec. 6.2)
        self.lose(worker, outcome.at, outcome.reason)
        return True

    def lose(self, worker: Worker, now: Nanoseconds, reason: str) -> None:
        """Take *worker* out of service, unless it is; its step and its queue go back."""
        if worker.state == "out of service":
            return
        worker.state = "out of service"
        state, group = self._state, worker.group
        returned = self._steps.fail(worker, now, reason) + worker.empty_queue()
        for request_id in returned:
            state.queued_at.pop(request_id, None)
        if returned:
            state.facts.append(RequestsReturned(now, group, returned, reason))
        here = (occupancy for occupancy in state.occupied.values() if occupancy.worker == group)
        self._handoffs.return_waiting(here, now, reason)
        self._handoffs.admit_waiting()  # one that left the line may have kept smaller ones waiting
