"""Steps: who is taken from a queue, what a step installs, when a worker pauses for its hand-offs (D5)."""

from collections.abc import Iterator, Sequence

from vertumnus.domain.facts import (
    Installed,
    StepFailed,
    StepFinished,
    StepItem,
    StepStarted,
    WorkerResumed,
    WorkerStalled,
)
from vertumnus.domain.jobs import StepDone, StepJob, StepWork
from vertumnus.domain.units import JobId, Nanoseconds, RequestId
from vertumnus.workers.block_cache import Reservation
from vertumnus.workers.fleet_state import FleetState
from vertumnus.workers.handoffs import Handoffs
from vertumnus.workers.worker import Occupancy, Worker


class Steps:
    """The steps that run, at most one at a worker."""

    def __init__(self, state: FleetState, handoffs: Handoffs) -> None:
        self._state = state
        self._handoffs = handoffs
        self._step_tokens = state.config.step_tokens
        self._handoff_share = state.config.handoff_share
        self._running: dict[JobId, Worker] = {}

    def __len__(self) -> int:
        return len(self._running)

    def worker_of(self, job_id: JobId) -> Worker | None:
        """Return the worker that runs the step; None when no such step runs."""
        return self._running.get(job_id)

    def go_on(self, worker: Worker, now: Nanoseconds) -> None:
        """Stall or resume *worker*, which serves, and start its next step if it may and there is one."""
        stalled = worker.handoff_blocks > self._handoff_share * worker.cache.capacity
        if stalled != worker.stalled:
            worker.stalled = stalled
            self._state.facts.append((WorkerStalled if stalled else WorkerResumed)(now, worker.group))
        if stalled or worker.step is not None or not worker.queued:
            return
        taken, reservations = worker.take_ready(self._step_tokens)
        if taken:  # else it waits for hand-offs to give blocks back
            self._start(worker, taken, reservations, now)

    def done(self, outcome: StepDone) -> None:
        """Make the prompts' blocks resident and hand their requests off."""
        worker = self._running.pop(outcome.job_id, None)
        if worker is None:
            return
        finished, worker.running, worker.step = worker.running, [], None
        worker.failed_steps = 0
        installed = tuple(self._settle(worker, finished))
        self._state.facts.append(
            StepFinished(outcome.at, outcome.job_id, worker.group, outcome.compute_ns, installed)
        )
        for occupancy in finished:
            self._handoffs.begin(worker, occupancy, outcome.at)
        self._state.with_room.append(worker)

    def fail(
        self, worker: Worker, now: Nanoseconds, reason: str, *, ends_worker: bool
    ) -> tuple[RequestId, ...]:
        """Fail the step that *worker* runs, if any; return who was in it and is still wanted."""
        step_id, failed = worker.step, worker.running
        if step_id is None:
            return ()
        state = self._state
        del self._running[step_id]
        worker.step, worker.running = None, []
        state.facts.append(StepFailed(now, step_id, worker.group, reason, ends_worker))
        for occupancy in failed:
            state.leave(occupancy)
            if occupancy.is_cancelled:
                state.end(occupancy.request.request_id, "cancelled", 0, now)
        returned = tuple(o.request.request_id for o in failed if not o.is_cancelled)
        for request_id in returned:
            del state.occupied[request_id]
        return returned

    def _start(
        self, worker: Worker, taken: list[Occupancy], reservations: Sequence[Reservation], now: Nanoseconds
    ) -> None:
        state = self._state
        step_id = state.next_job()
        worker.step, worker.running = step_id, taken
        self._running[step_id] = worker
        for occupancy in taken:
            request_id = occupancy.request.request_id
            del state.queued_at[request_id]
            state.occupied[request_id] = occupancy
        works = tuple(map(self._work, taken))
        items = tuple(StepItem(work.request_id, work.attempt, work.cached_tokens) for work in works)
        evicted = tuple(gone for reservation in reservations for gone in reservation.evicted)
        state.facts.append(StepStarted(now, step_id, worker.group, worker.epoch, items, evicted))
        state.jobs.append(StepJob(step_id, worker.group, worker.epoch, works))

    def _work(self, occupancy: Occupancy) -> StepWork:
        request = occupancy.request
        return StepWork(
            request.request_id,
            occupancy.attempt,
            request.input_tokens,
            occupancy.cached_blocks * self._state.block_tokens,
            tuple(occupancy.slots),
        )

    def _settle(self, worker: Worker, finished: list[Occupancy]) -> Iterator[Installed]:
        for occupancy in finished:
            owners = worker.settle(occupancy)
            if occupancy.cached_blocks < len(occupancy.path):
                yield Installed(occupancy.request.request_id, occupancy.cached_blocks, owners)
