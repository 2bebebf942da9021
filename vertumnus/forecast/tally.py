"""What is counted in one trial: first tokens of its requests, its transition, its copies."""

from collections.abc import Callable, Iterable

from vertumnus.domain.codec import Body
from vertumnus.domain.facts import FirstTokenEmitted, RequestCancelled, RequestEnded
from vertumnus.domain.forecast import ForecastOutcome
from vertumnus.domain.move import Move
from vertumnus.domain.orders import Answer
from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND, Blocks, Nanoseconds, RequestId
from vertumnus.records.cache_ops import CacheOpList
from vertumnus.records.clock import Clock
from vertumnus.records.folds import joined
from vertumnus.records.metrics import percentile_s
from vertumnus.records.reconfigs import Reconfig, ReconfigList
from vertumnus.records.timeline import Handlers


class Tally:
    """Told every record of a trial."""

    def __init__(self, requests: Iterable[Request], now: Callable[[], Nanoseconds]) -> None:
        """Count *requests*; *now* is the trial's clock."""
        self._clock = Clock()
        self._now = now
        self._reconfigs = ReconfigList(self._clock)
        self._copies = CacheOpList(self._clock)
        self._waiting: dict[RequestId, Request] = {each.request_id: each for each in requests}
        self._counted = len(self._waiting)
        self._ttfts: list[Nanoseconds] = []
        self._given_up: list[Nanoseconds] = []
        """How long those waited whose clients gave up: their TTFTs would have been longer."""
        self._judged_tokens = self._met_tokens = 0
        self.refused: str | None = None
        """Why the move cannot be made; None while nothing speaks against it."""
        own: Handlers = {
            FirstTokenEmitted: self._first_token,
            RequestCancelled: self._cancelled,
            RequestEnded: self._ended,
            Answer: self._answered,
        }
        self._handlers = joined(own, self._reconfigs.handlers, self._copies.handlers)

    @property
    def is_waiting(self) -> bool:
        """Whether a request has neither got its first token nor ended without one."""
        return bool(self._waiting)

    def record(self, source: int, body: Body) -> None:
        """Take one record; a loop's `Record`."""
        handlers = self._handlers.get(type(body))
        if handlers is not None:
            self._clock.now = self._now()
            for handler in handlers:
                handler(body)

    def transition(self, move: Move) -> Reconfig | None:
        """Return what became of *move*; None while it has not ended."""
        ended = (each for each in self._reconfigs.reconfigs if each.sources == move.sources)
        return next(ended, None)

    def outcome(self, move: Move | None, missing_blocks: Blocks) -> ForecastOutcome:
        """Return what was counted."""
        ttfts = sorted([*self._ttfts, *self._given_up])
        percentile = percentile_s(ttfts, 90)
        judged = self._judged_tokens + sum(
            each.input_tokens for each in self._waiting.values() if each.ttft_target_ns is not None
        )
        made = None if move is None else self.transition(move)
        copies = [copy for copy in self._copies.cache_ops if copy.outcome == "finished"]
        return ForecastOutcome(
            move=move,
            requests=self._counted,
            served=len(self._ttfts),
            ttft_mean_ns=sum(ttfts) // len(ttfts) if ttfts else None,
            ttft_p90_ns=None if percentile is None else round(percentile * SECOND),
            slo_attainment=self._met_tokens / judged if judged else None,
            drain_ns=None if made is None else made.drain_ns,
            switch_ns=None if made is None or made.outcome != "committed" else made.switch_ns,
            missing_blocks=missing_blocks,
            copied_blocks=sum(copy.blocks for copy in copies),
            copied_bytes=sum(copy.payload_bytes or 0 for copy in copies),
        )

    def _first_token(self, fact: FirstTokenEmitted) -> None:
        request = self._waiting.pop(fact.request_id, None)
        if request is not None:
            ttft = fact.at - request.arrival_ns
            self._ttfts.append(ttft)
            self._judge(request, ttft)

    def _cancelled(self, fact: RequestCancelled) -> None:
        request = self._waiting.pop(fact.request_id, None)
        if request is not None:
            self._given_up.append(fact.at - request.arrival_ns)
            self._judge(request, None)

    def _ended(self, fact: RequestEnded) -> None:
        request = self._waiting.pop(fact.request_id, None)
        if request is not None:
            self._judge(request, None)

    def _judge(self, request: Request, ttft: Nanoseconds | None) -> None:
        if request.ttft_target_ns is not None:
            self._judged_tokens += request.input_tokens
            if ttft is not None and ttft <= request.ttft_target_ns:
                self._met_tokens += request.input_tokens

    def _answered(self, order: Answer) -> None:
        if not order.accepted:
            self.refused = order.reason
