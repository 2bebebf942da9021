"""Fold of a run's facts and orders into the list of what went wrong."""

from msgspec import Struct

from vertumnus.domain.facts import (
    DecodeRankLost,
    HandoffFailed,
    OperatorActed,
    RankLost,
    StepFailed,
    TimerFired,
    TransferFailed,
    WorkerResumed,
    WorkerStalled,
)
from vertumnus.domain.move import Move
from vertumnus.domain.orders import Answer, CloseTransition, NoteDrift
from vertumnus.domain.units import Nanoseconds
from vertumnus.records.clock import Clock
from vertumnus.records.timeline import Handlers

LOSSES = frozenset(("rank_lost", "decode_rank_lost", "worker_lost", "transition_failed"))
"""Kinds of faults after which the pool is another than the one configured: the run ends INVALID."""


class Fault(Struct, frozen=True, gc=False):
    """One thing that went wrong, or was mended."""

    t_ns: Nanoseconds
    kind: str
    subject: str
    """Whom it befell: "rank 3", "decode rank 0", "worker 0x2", "request 17", "split 0x2 -> 0x1 + 1x1"."""
    reason: str | None


class FaultList:
    """Losses; failed steps, hand-offs, copies, transitions; stalls; drifts; refused wishes; in order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.faults: list[Fault] = []
        self.handlers: Handlers = {
            RankLost: self._rank_lost,
            DecodeRankLost: self._decode_rank_lost,
            StepFailed: self._step_failed,
            HandoffFailed: self._handoff_failed,
            TransferFailed: self._transfer_failed,
            WorkerStalled: self._stalled,
            WorkerResumed: self._resumed,
            TimerFired: self._timer_fired,
            CloseTransition: self._transition_closed,
            OperatorActed: self._operator_acted,
            NoteDrift: self._drifted,
            Answer: self._answered,
        }
        self._ended_ns: Nanoseconds = 0
        """Of the last fact that can end a transition without success: the order itself has no time."""
        self._lost_ns: Nanoseconds | None = None
        """When a rank was lost last: the worker's step fails at that moment."""
        self._wishes: dict[int, OperatorActed] = {}

    def _rank_lost(self, fact: RankLost) -> None:
        self._ended_ns = self._lost_ns = fact.at
        self.faults.append(Fault(fact.at, "rank_lost", f"rank {fact.rank}", fact.reason))

    def _decode_rank_lost(self, fact: DecodeRankLost) -> None:
        self.faults.append(Fault(fact.at, "decode_rank_lost", f"decode rank {fact.rank}", fact.reason))

    def _step_failed(self, fact: StepFailed) -> None:
        self._ended_ns = fact.at
        is_loss = fact.ends_worker and fact.at != self._lost_ns  # else the lost rank says it
        kind = "worker_lost" if is_loss else "step_failed"
        self.faults.append(Fault(fact.at, kind, f"worker {fact.worker}", fact.reason))

    def _handoff_failed(self, fact: HandoffFailed) -> None:
        self.faults.append(Fault(fact.at, "handoff_failed", f"request {fact.request_id}", fact.reason))

    def _transfer_failed(self, fact: TransferFailed) -> None:
        copy = f"transfer {fact.transfer_id} to worker {fact.worker}"
        self.faults.append(Fault(fact.at, "transfer_failed", copy, fact.reason))

    def _stalled(self, fact: WorkerStalled) -> None:
        self.faults.append(Fault(fact.at, "worker_stalled", f"worker {fact.worker}", None))

    def _resumed(self, fact: WorkerResumed) -> None:
        self.faults.append(Fault(fact.at, "worker_resumed", f"worker {fact.worker}", None))

    def _timer_fired(self, fact: TimerFired) -> None:
        self._ended_ns = fact.at

    def _transition_closed(self, order: CloseTransition) -> None:
        if order.outcome != "committed":
            move = Move(order.kind, order.sources, order.targets)
            kind = f"transition_{order.outcome}"
            self.faults.append(Fault(self._ended_ns, kind, str(move), order.reason))

    def _drifted(self, order: NoteDrift) -> None:
        kind = "drift_raised" if order.is_raised else "drift_cleared"
        what = f"prefills take {order.ratio:.2f} of the profile's time (median of {order.samples})"
        self.faults.append(Fault(self._clock.now, kind, f"degree {order.degree}", what))

    def _operator_acted(self, fact: OperatorActed) -> None:
        self._wishes[fact.action_id] = fact

    def _answered(self, order: Answer) -> None:
        wish = self._wishes.pop(order.action_id, None)
        if wish is not None and not order.accepted:
            self.faults.append(Fault(wish.at, "wish_refused", f"{wished(wish)} by {wish.who}", order.reason))


def wished(wish: OperatorActed) -> str:
    """Return what an operator asked for: "merge 0x2 + 2x2", "tune beta 1.5", "copy prefix 7 to 0x2"."""
    if wish.action in ("copy", "reclaim"):
        where = "to" if wish.action == "copy" else "at"
        return f"{wish.action} prefix {wish.value} {where} {' + '.join(map(str, wish.workers))}"
    value = "" if wish.value is None else f"{wish.value}"
    workers = " + ".join(map(str, wish.workers))
    return " ".join(word for word in (wish.action, workers, wish.setting, value) if word)
