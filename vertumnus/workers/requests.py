"""Requests outside of steps and hand-offs: they arrive, are queued where placed, cancelled, rejected."""

from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.facts import RequestArrived, RequestsReturned
from vertumnus.domain.orders import Cancel, Prefill, Reject
from vertumnus.domain.units import Nanoseconds, RequestId
from vertumnus.workers.fleet_state import FleetState
from vertumnus.workers.handoffs import NO_RANK, Handoffs


class Requests:
    """What the control plane wishes for one request."""

    def __init__(self, state: FleetState, handoffs: Handoffs) -> None:
        self._state = state
        self._handoffs = handoffs

    def arrived(self, fact: RequestArrived) -> None:
        """Know the request until it ends."""
        self._state.requests[fact.request.request_id] = fact.request

    def prefill(self, order: Prefill, now: Nanoseconds) -> None:
        """Queue the request at its worker, or return it: that one does not serve, or nobody could decode it.

        Raises ProtocolError if it is at a worker already.
        """
        state, request_id = self._state, order.request_id
        request, worker = state.requests[request_id], state.workers[order.worker]
        if request_id in state.queued_at or request_id in state.occupied:
            raise ProtocolError(f"request {request_id} is already at a worker")
        if self._handoffs.is_over:
            self._refuse(order, now, NO_RANK, is_final=True)
            return
        if worker.state != "serving":
            self._refuse(order, now, worker.state, is_failure=worker.state == "out of service")
            return
        worker.enqueue(order, request)
        state.queued_at[request_id] = worker
        state.with_room.append(worker)

    def cancel(self, order: Cancel, now: Nanoseconds) -> None:
        """End the request as soon as the blocks that it holds may be given back."""
        state, request_id = self._state, order.request_id
        if request_id not in state.requests:
            return  # it ended while the wish to cancel it was on its way
        occupancy = state.occupied.get(request_id)
        if occupancy is None:
            self._cancel_queued(request_id, now)
        elif not occupancy.is_cancelled:
            occupancy.is_cancelled = True
            self._handoffs.cancel(occupancy, now)

    def reject(self, order: Reject, now: Nanoseconds) -> None:
        """End a request that no worker shall have."""
        self._state.end(order.request_id, order.status, 0, now, order.reason)

    def _refuse(
        self,
        order: Prefill,
        now: Nanoseconds,
        reason: str,
        *,
        is_failure: bool = True,
        is_final: bool = False,
    ) -> None:
        returned = RequestsReturned(now, order.worker, (order.request_id,), reason, is_failure, is_final)
        self._state.facts.append(returned)

    def _cancel_queued(self, request_id: RequestId, now: Nanoseconds) -> None:
        state = self._state
        worker = state.queued_at.pop(request_id, None)
        state.end(request_id, "cancelled", 0, now)
        if worker is not None:  # else it waits at the control plane
            worker.dequeue(request_id)
            state.with_room.append(worker)  # it may have kept smaller ones waiting
