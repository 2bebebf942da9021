"""What a lost rank, worker or switch means: who is placed anew, who fails, and what becomes of the run."""

from vertumnus.domain.facts import DecodeRankLost, RankLost, RequestEnded, RequestsReturned, StepFailed
from vertumnus.domain.units import Nanoseconds, RequestId
from vertumnus.domain.wording import counted
from vertumnus.records.timeline import Handlers


class _Toll:
    """What one loss cost at once."""

    def __init__(self) -> None:
        self.given_back: set[RequestId] = set()
        self.ended: set[RequestId] = set()
        """Without being served."""
        self.is_last = False
        """Whether nobody was left to serve after it."""


class Losses:
    """Fold of losses and of the requests that each gave back; `settle` adds what the pool was left with."""

    def __init__(self) -> None:
        self.handlers: Handlers = {
            RankLost: self._lost,
            DecodeRankLost: self._lost,
            StepFailed: self._step_failed,
            RequestsReturned: self._returned,
            RequestEnded: self._ended,
        }
        self._tolls: dict[Nanoseconds, _Toll] = {}
        """By the instant of a loss: what follows from an event is told at the same one."""
        self._unsettled: _Toll | None = None

    @property
    def is_open(self) -> bool:
        """Whether something was lost since `settle`."""
        return self._unsettled is not None

    def settle(self, can_serve: bool) -> None:
        """Note whether the pool, once it has taken the event of a loss, can serve anybody."""
        if self._unsettled is not None:
            self._unsettled.is_last = not can_serve
            self._unsettled = None

    def consequence(self, kind: str, at: Nanoseconds) -> str:
        """Return what a loss of *kind*, one of `LOSSES`, at instant *at* means."""
        toll = self._tolls.get(at, _Toll())
        who = {"rank_lost": "its worker is", "transition_failed": "its ranks are"}.get(kind, "it is")
        told = [f"{who} out of service"]
        if again := len(toll.given_back - toll.ended):
            told.append(f"{_requests(again)} placed anew")
        if toll.ended:
            told.append(f"{_requests(len(toll.ended))} ended unserved")
        told.append(
            "nobody is left to serve: all requests fail from here on, and the run ends INVALID"
            if toll.is_last
            else "the run goes on and ends INVALID"
        )
        return "; ".join(told)

    def _lost(self, fact: RankLost | DecodeRankLost) -> None:
        self._unsettled = self._tolls.setdefault(fact.at, _Toll())

    def _step_failed(self, fact: StepFailed) -> None:
        if fact.ends_worker:
            self._unsettled = self._tolls.setdefault(fact.at, _Toll())

    def _returned(self, fact: RequestsReturned) -> None:
        if fact.at in self._tolls and fact.is_failure and not fact.is_final:
            self._tolls[fact.at].given_back.update(fact.request_ids)

    def _ended(self, fact: RequestEnded) -> None:
        if fact.at in self._tolls and fact.status in ("failed", "rejected"):
            self._tolls[fact.at].ended.add(fact.request_id)


def _requests(count: int) -> str:
    return counted(count, "request is", "requests are")
