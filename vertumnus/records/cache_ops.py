"""Fold of a run's facts and orders into one row per copy or reclamation of blocks (sec. 7.2)."""

from typing import Literal

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import DeletionRefused, ReplicasDeleted, TransferFailed, TransferFinished
from vertumnus.domain.orders import Origin, Reclaim, Transfer
from vertumnus.domain.units import Blocks, Nanoseconds, RequestId
from vertumnus.records.clock import Clock
from vertumnus.records.timeline import Handlers


class CacheOp(Struct, frozen=True, gc=False, kw_only=True):
    """One copy, or one worker's reclamation, from its order to its end."""

    t_ns: Nanoseconds
    """When it was ordered."""
    transfer_id: int | None
    """None for a reclamation."""
    purpose: str
    """Why a copy was ordered, or "reclaim"."""
    origin: Origin | None
    """Who wanted it; None in runs from before that was noted."""
    worker: CpGroup
    """The destination of a copy; who deletes."""
    for_request: RequestId | None
    outcome: Literal["finished", "failed", "interrupted"]
    """Interrupted when the run ended first."""
    reason: str | None
    """Why it failed; why the first block stays, where a reclamation was refused in part."""
    blocks: Blocks
    """Blocks that came from another worker's ranks, 0 unless it finished; blocks that were deleted."""
    payload_bytes: int | None
    wire_ns: Nanoseconds | None
    wait_ns: Nanoseconds | None
    """Order to end."""


class _Ordered(Struct, frozen=True):
    at: Nanoseconds
    order: Transfer

    def ended(
        self,
        outcome: Literal["finished", "failed", "interrupted"],
        at: Nanoseconds | None,
        reason: str | None = None,
        finished: TransferFinished | None = None,
    ) -> CacheOp:
        order = self.order
        return CacheOp(
            t_ns=self.at,
            transfer_id=order.transfer_id,
            purpose=order.reason,
            origin=order.origin,
            worker=order.destination,
            for_request=order.for_request,
            outcome=outcome,
            reason=reason,
            blocks=0 if finished is None else _travelled(order, finished),
            payload_bytes=None if finished is None else finished.payload_bytes,
            wire_ns=None if finished is None else finished.wire_ns,
            wait_ns=None if at is None else at - self.at,
        )


class _Reclaiming(Struct):
    at: Nanoseconds
    order: Reclaim
    open: int
    """Blocks that were not answered yet."""
    deleted: Blocks = 0
    reason: str | None = None

    def ended(self, outcome: Literal["finished", "failed", "interrupted"]) -> CacheOp:
        return CacheOp(
            t_ns=self.at,
            transfer_id=None,
            purpose="reclaim",
            origin=self.order.origin,
            worker=self.order.worker,
            for_request=None,
            outcome=outcome,
            reason=self.reason,
            blocks=self.deleted,
            payload_bytes=None,
            wire_ns=None,
            wait_ns=0 if self.open == 0 else None,
        )


class CacheOpList:
    """Copies and reclamations, in the order of their ends."""

    def __init__(self, clock: Clock) -> None:
        self.cache_ops: list[CacheOp] = []
        self.handlers: Handlers = {
            Transfer: self._ordered,
            TransferFinished: self._finished,
            TransferFailed: self._failed,
            Reclaim: self._reclaim,
            ReplicasDeleted: self._deleted,
            DeletionRefused: self._refused,
        }
        self._clock = clock
        self._under_way: dict[int, _Ordered] = {}
        self._reclaiming: dict[int, _Reclaiming] = {}

    def interrupt(self) -> None:
        """Close the copies still under way at the end of the run, in the order of their orders."""
        self.cache_ops += [ordered.ended("interrupted", None) for ordered in self._under_way.values()]
        self.cache_ops += [reclaiming.ended("interrupted") for reclaiming in self._reclaiming.values()]
        self._under_way.clear()
        self._reclaiming.clear()

    def _ordered(self, order: Transfer) -> None:
        self._under_way[order.transfer_id] = _Ordered(self._clock.now, order)

    def _finished(self, fact: TransferFinished) -> None:
        ordered = self._under_way.pop(fact.transfer_id, None)
        if ordered is not None:
            self.cache_ops.append(ordered.ended("finished", fact.at, finished=fact))

    def _failed(self, fact: TransferFailed) -> None:
        ordered = self._under_way.pop(fact.transfer_id, None)
        if ordered is not None:
            self.cache_ops.append(ordered.ended("failed", fact.at, fact.reason))

    def _reclaim(self, order: Reclaim) -> None:
        self._reclaiming[order.reclaim_id] = _Reclaiming(self._clock.now, order, len(order.keys))

    def _deleted(self, fact: ReplicasDeleted) -> None:
        reclaiming = self._reclaiming.get(fact.reclaim_id)
        if reclaiming is not None:
            count = sum(len(keys) for _, keys in fact.evicted)
            reclaiming.deleted += count
            self._answered(reclaiming, count)

    def _refused(self, fact: DeletionRefused) -> None:
        reclaiming = self._reclaiming.get(fact.reclaim_id)
        if reclaiming is not None:
            reclaiming.reason = reclaiming.reason or fact.reason
            self._answered(reclaiming, 1)

    def _answered(self, reclaiming: _Reclaiming, blocks: Blocks) -> None:
        reclaiming.open -= blocks
        if reclaiming.open == 0:
            del self._reclaiming[reclaiming.order.reclaim_id]
            self.cache_ops.append(reclaiming.ended("finished" if reclaiming.deleted else "failed"))


def _travelled(order: Transfer, finished: TransferFinished) -> Blocks:
    """Return how many of the blocks that now count were to come from outside the destination."""
    first = finished.first_block - order.first_block
    sources = order.sources[first : first + len(finished.owners)]
    return sum(rank not in order.destination.ranks for rank in sources)
