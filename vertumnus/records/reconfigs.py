"""Fold of a run's facts and orders into one row per split or merge: drain, park, switch (sec. 6.2).

A transition has its row when it is closed; one that the run's end cuts off has none.
"""

from typing import Literal

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import OperatorActed, RequestsReturned, WorkerDrained, WorkerFormed
from vertumnus.domain.orders import AdoptEpoch, Answer, CloseTransition, Drain
from vertumnus.domain.units import Blocks, Epoch, Nanoseconds
from vertumnus.records.clock import Clock
from vertumnus.records.timeline import Handlers

CONTROLLER = "controller"
"""Who begins a transition that no operator asked for."""


class Reconfig(Struct, frozen=True, gc=False, kw_only=True):
    """One transition, from the first Drain to its end."""

    t_ns: Nanoseconds
    """When it began."""
    epoch: Epoch
    kind: Literal["split", "merge"]
    sources: tuple[CpGroup, ...]
    targets: tuple[CpGroup, ...]
    by: str
    """`CONTROLLER`, or the operator."""
    outcome: Literal["committed", "reopened", "failed"]
    reason: str | None
    """Why it did not commit."""
    drain_ns: Nanoseconds | None
    """First Drain to last WorkerDrained, the park within; None when a source never came to a boundary."""
    park_ns: Nanoseconds | None
    """First to last WorkerDrained: how long a sibling waited for the other."""
    switch_ns: Nanoseconds | None
    """AdoptEpoch to the end; None when the epoch was never sent."""
    total_ns: Nanoseconds
    redirected_requests: int
    """Queued requests that were placed elsewhere."""
    evicted_blocks: Blocks
    """Second copies that a merged worker gave up."""


class _Source(Struct, gc=False):
    """A worker on its way out."""

    begun_ns: Nanoseconds
    by: str
    drained_ns: Nanoseconds | None = None
    redirected: int = 0


class _Switch(Struct, gc=False):
    sent_ns: Nanoseconds
    evicted: Blocks = 0


class ReconfigList:
    """Transitions in the order of their ends."""

    def __init__(self, clock: Clock) -> None:
        self.reconfigs: list[Reconfig] = []
        self.handlers: Handlers = {
            OperatorActed: self._operator_acted,
            Answer: self._answered,
            Drain: self._drain,
            RequestsReturned: self._returned,
            WorkerDrained: self._drained,
            AdoptEpoch: self._adopt,
            WorkerFormed: self._formed,
            CloseTransition: self._closed,
        }
        self._clock = clock
        self._wishes: dict[int, OperatorActed] = {}
        self._wished: dict[CpGroup, str] = {}
        """Operators by the workers of accepted wishes, until these drain."""
        self._sources: dict[CpGroup, _Source] = {}
        self._switches: dict[Epoch, _Switch] = {}

    def _operator_acted(self, fact: OperatorActed) -> None:
        self._wishes[fact.action_id] = fact

    def _answered(self, order: Answer) -> None:
        wish = self._wishes.pop(order.action_id, None)
        if wish is not None and order.accepted and wish.action in ("split", "merge"):
            self._wished.update(dict.fromkeys(wish.workers, wish.who))

    def _drain(self, order: Drain) -> None:
        by = self._wished.pop(order.worker, CONTROLLER)
        self._sources[order.worker] = _Source(self._clock.now, by)

    def _returned(self, fact: RequestsReturned) -> None:
        source = self._sources.get(fact.worker)
        if source is not None and not fact.is_failure:
            source.redirected += len(fact.request_ids)

    def _drained(self, fact: WorkerDrained) -> None:
        source = self._sources.get(fact.worker)
        if source is not None:
            source.drained_ns = fact.at

    def _adopt(self, order: AdoptEpoch) -> None:
        self._switches[order.epoch] = _Switch(self._clock.now)

    def _formed(self, fact: WorkerFormed) -> None:
        switch = self._switches.get(fact.epoch)
        if switch is not None:
            switch.evicted += sum(len(gone.keys) for gone in fact.evicted)

    def _closed(self, order: CloseTransition) -> None:
        now = self._clock.now
        sources = [self._sources.pop(worker, _Source(now, CONTROLLER)) for worker in order.sources]
        begun = min(source.begun_ns for source in sources)
        boundaries = [source.drained_ns for source in sources if source.drained_ns is not None]
        are_drained = len(boundaries) == len(sources)
        switch = self._switches.pop(order.epoch, None)
        self.reconfigs.append(
            Reconfig(
                t_ns=begun,
                epoch=order.epoch,
                kind=order.kind,
                sources=order.sources,
                targets=order.targets,
                by=sources[0].by,
                outcome=order.outcome,
                reason=order.reason or None,
                drain_ns=max(boundaries) - begun if are_drained else None,
                park_ns=max(boundaries) - min(boundaries) if are_drained else None,
                switch_ns=None if switch is None else now - switch.sent_ns,
                total_ns=now - begun,
                redirected_requests=sum(source.redirected for source in sources),
                evicted_blocks=0 if switch is None else switch.evicted,
            )
        )
