"""Transfers between workers: an order becomes a copy job, and its end is told (sec. 7.2)."""

from collections.abc import Collection

from vertumnus.domain.facts import TransferFailed, TransferFinished, TransferStarted
from vertumnus.domain.jobs import CopyDone, CopyJob, JobError
from vertumnus.domain.orders import Transfer
from vertumnus.domain.units import JobId, Nanoseconds
from vertumnus.workers.copies import Copy, abandon_copy, begin_copy, finish_copy
from vertumnus.workers.fleet_state import FleetState


class Transfers:
    """The copies that are under way."""

    def __init__(self, state: FleetState) -> None:
        self._state = state
        self._open: dict[JobId, Copy] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def under_way(self) -> Collection[Copy]:
        """Copies that have begun and not ended."""
        return self._open.values()

    def begin(self, order: Transfer, now: Nanoseconds) -> None:
        """Start the copy that *order* asks for, or tell why there is none."""
        state = self._state
        copy = begin_copy(order, state.workers[order.destination], state.worker_of_rank)
        if isinstance(copy, str):
            state.facts.append(TransferFailed(now, order.transfer_id, order.destination, copy))
            return
        copy.destination.awaited_transfers.add(order.transfer_id)
        job_id = state.next_job()
        self._open[job_id] = copy
        state.facts.append(TransferStarted(now, order.transfer_id, order.destination, copy.evicted))
        state.jobs.append(CopyJob(job_id, order.destination, copy.moves, copy.sources))

    def done(self, outcome: CopyDone) -> None:
        """Make the copied blocks resident, unless their destination was lost meanwhile."""
        copy = self._open.pop(outcome.job_id, None)
        if copy is None:
            return
        if not copy.destination.in_service:
            self._abandon(copy, outcome.at, "its destination was lost")
            return
        order, owners = copy.order, finish_copy(copy)
        self._state.facts.append(
            TransferFinished(
                outcome.at,
                order.transfer_id,
                order.destination,
                copy.first_block,
                owners,
                outcome.payload_bytes,
                outcome.wire_ns,
            )
        )
        self._after_copy(copy)

    def failed(self, outcome: JobError) -> bool:
        """Give up a copy that broke; return whether the job is one of these."""
        copy = self._open.pop(outcome.job_id, None)
        if copy is None:
            return False
        self._abandon(copy, outcome.at, outcome.reason)
        return True

    def _abandon(self, copy: Copy, now: Nanoseconds, reason: str) -> None:
        abandon_copy(copy)
        order = copy.order
        self._state.facts.append(TransferFailed(now, order.transfer_id, order.destination, reason))
        self._after_copy(copy)

    def _after_copy(self, copy: Copy) -> None:
        copy.destination.awaited_transfers.discard(copy.order.transfer_id)
        self._state.with_room.extend(worker for worker, _keys in copy.pinned)
