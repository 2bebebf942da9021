"""What a lost rank, worker or switch means for the run: who is placed anew, and that it ends INVALID."""

from vertumnus.domain.facts import DecodeRankLost, RankLost, RequestsReturned, StepFailed
from vertumnus.domain.units import Nanoseconds
from vertumnus.records.timeline import Handlers


class Losses:
    """Fold of losses and of the requests that each gave back."""

    def __init__(self) -> None:
        self.handlers: Handlers = {
            RankLost: self._lost,
            DecodeRankLost: self._lost,
            StepFailed: self._step_failed,
            RequestsReturned: self._returned,
        }
        self._requests: dict[Nanoseconds, int] = {}
        """Given back, by the instant of a loss: what follows from an event is told at the same one."""

    def consequence(self, kind: str, at: Nanoseconds) -> str:
        """Return what a loss of *kind*, one of `LOSSES`, at instant *at* means."""
        count = self._requests.get(at, 0)
        requests = "1 request is" if count == 1 else f"{count} requests are"
        placed = f"; {requests} placed anew" if count else ""
        who = {"rank_lost": "its worker is", "transition_failed": "its ranks are"}.get(kind, "it is")
        return f"{who} out of service{placed}; the run goes on and ends INVALID"

    def _lost(self, fact: RankLost | DecodeRankLost) -> None:
        self._requests.setdefault(fact.at, 0)

    def _step_failed(self, fact: StepFailed) -> None:
        if fact.ends_worker:
            self._requests.setdefault(fact.at, 0)

    def _returned(self, fact: RequestsReturned) -> None:
        if fact.at in self._requests and fact.is_failure and not fact.is_final:
            self._requests[fact.at] += len(fact.request_ids)
