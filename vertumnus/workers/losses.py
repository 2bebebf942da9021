"""Steps that break, and workers that go out of service: a rank died, steps keep breaking, or a transition
failed (sec. 6.2).
"""

from vertumnus.domain.facts import RankLost, RequestsReturned
from vertumnus.domain.jobs import JobError
from vertumnus.domain.units import Nanoseconds, RequestId
from vertumnus.workers.fleet_state import FleetState
from vertumnus.workers.handoffs import Handoffs
from vertumnus.workers.steps import Steps
from vertumnus.workers.worker import Worker

FAILED_STEPS = 3
"""Steps that fail in a row and end their worker: one or two may be a moment's trouble of the machine, while
a worker that fails whatever it gets is always idle, and would draw and spoil every request.
"""


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
        """Give back the requests of a step that broke; return whether the job is a step.

        Its ranks are at a boundary, and the engine gives them a new group where theirs is dead, so the
        worker goes on; it is lost with `FAILED_STEPS` such steps in a row.
        """
        worker = self._steps.worker_of(outcome.job_id)
        if worker is None:
            return False
        worker.failed_steps += any(occupancy.attempt == 0 for occupancy in worker.running)
        if worker.failed_steps >= FAILED_STEPS:
            self.lose(worker, outcome.at, f"{FAILED_STEPS} steps in a row failed, the last: {outcome.reason}")
            return True
        returned = self._steps.fail(worker, outcome.at, outcome.reason, ends_worker=False)
        self._give_back(worker, returned, outcome.at, outcome.reason)
        self._state.with_room.append(worker)
        return True

    def lose(self, worker: Worker, now: Nanoseconds, reason: str) -> None:
        """Take *worker* out of service, unless it is; its step and its queue go back."""
        if worker.state == "out of service":
            return
        worker.state = "out of service"
        state, group = self._state, worker.group
        returned = self._steps.fail(worker, now, reason, ends_worker=True) + worker.empty_queue()
        for request_id in returned:
            state.queued_at.pop(request_id, None)
        self._give_back(worker, returned, now, reason)
        here = (occupancy for occupancy in state.occupied.values() if occupancy.worker == group)
        self._handoffs.return_waiting(here, now, reason)
        self._handoffs.admit_waiting()  # one that left the line may have kept smaller ones waiting

    def _give_back(
        self, worker: Worker, returned: tuple[RequestId, ...], now: Nanoseconds, reason: str
    ) -> None:
        if returned:
            self._state.facts.append(RequestsReturned(now, worker.group, returned, reason))
