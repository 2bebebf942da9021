"""Fold of a run's facts into the list of what went wrong."""

from msgspec import Struct

from vertumnus.domain.facts import (
    DecodeRankLost,
    HandoffFailed,
    RankLost,
    StepFailed,
    WorkerResumed,
    WorkerStalled,
)
from vertumnus.domain.units import Nanoseconds
from vertumnus.records.timeline import Handlers


class Fault(Struct, frozen=True, gc=False):
    """One thing that went wrong, or was mended."""

    t_ns: Nanoseconds
    kind: str
    subject: str
    """Whom it befell: "rank 3", "decode rank 0", "worker 0x2", "request 17"."""
    reason: str | None


class FaultList:
    """Lost ranks, failed steps and hand-offs, stalled and resumed workers, in order."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.handlers: Handlers = {
            RankLost: self._rank_lost,
            DecodeRankLost: self._decode_rank_lost,
            StepFailed: self._step_failed,
            HandoffFailed: self._handoff_failed,
            WorkerStalled: self._stalled,
            WorkerResumed: self._resumed,
        }

    def _rank_lost(self, fact: RankLost) -> None:
        self.faults.append(Fault(fact.at, "rank_lost", f"rank {fact.rank}", fact.reason))

    def _decode_rank_lost(self, fact: DecodeRankLost) -> None:
        self.faults.append(Fault(fact.at, "decode_rank_lost", f"decode rank {fact.rank}", fact.reason))

    def _step_failed(self, fact: StepFailed) -> None:
        self.faults.append(Fault(fact.at, "step_failed", f"worker {fact.worker}", fact.reason))

    def _handoff_failed(self, fact: HandoffFailed) -> None:
        self.faults.append(Fault(fact.at, "handoff_failed", f"request {fact.request_id}", fact.reason))

    def _stalled(self, fact: WorkerStalled) -> None:
        self.faults.append(Fault(fact.at, "worker_stalled", f"worker {fact.worker}", None))

    def _resumed(self, fact: WorkerResumed) -> None:
        self.faults.append(Fault(fact.at, "worker_resumed", f"worker {fact.worker}", None))
