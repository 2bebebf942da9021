"""Fold of Forecast orders and their answers into one row per candidate: what was predicted, what was done."""

from typing import Literal

from msgspec import Struct

from vertumnus.domain.facts import ForecastFailed, ForecastFinished
from vertumnus.domain.forecast import ForecastOutcome
from vertumnus.domain.orders import Drain, Forecast
from vertumnus.domain.units import Nanoseconds
from vertumnus.records.clock import Clock
from vertumnus.records.timeline import Handlers


class ForecastRow(Struct, kw_only=True):
    """One candidate of a forecast; a forecast without an answer has one row, without a candidate."""

    t_ns: Nanoseconds
    """When it was asked for."""
    order: Forecast
    answer_ns: Nanoseconds | None
    """From the order to the answer; None without one."""
    outcome: ForecastOutcome | None
    status: Literal["answered", "failed", "interrupted"]
    """Interrupted when the run ended first."""
    reason: str | None = None
    """Why it failed."""
    made: bool = False
    """Whether it is what was done when the answer came."""


class _Asked(Struct, frozen=True):
    at: Nanoseconds
    order: Forecast


class ForecastList:
    """Forecasts, in the order of their answers."""

    def __init__(self, clock: Clock) -> None:
        self.forecasts: list[ForecastRow] = []
        self.handlers: Handlers = {
            Forecast: self._ordered,
            ForecastFinished: self._finished,
            ForecastFailed: self._failed,
            Drain: self._drain,
        }
        self._clock = clock
        self._open: dict[int, _Asked] = {}
        self._latest: list[ForecastRow] = []
        """Of the last answer: staying, then its moves."""
        self._answered_ns: Nanoseconds = 0

    def interrupt(self) -> None:
        """Close the forecasts that the run's end left without an answer, in the order of their orders."""
        self.forecasts += [
            ForecastRow(t_ns=at, order=order, answer_ns=None, outcome=None, status="interrupted")
            for at, order in ((asked.at, asked.order) for asked in self._open.values())
        ]
        self._open.clear()

    def _ordered(self, order: Forecast) -> None:
        self._open[order.forecast_id] = _Asked(self._clock.now, order)

    def _finished(self, fact: ForecastFinished) -> None:
        asked = self._open.pop(fact.forecast_id, None)
        if asked is None:
            return
        self._answered_ns = fact.at
        self._latest = [
            ForecastRow(
                t_ns=asked.at,
                order=asked.order,
                answer_ns=fact.at - asked.at,
                outcome=outcome,
                status="answered",
                made=outcome.move is None,
            )
            for outcome in fact.outcomes
        ]
        self.forecasts += self._latest

    def _failed(self, fact: ForecastFailed) -> None:
        asked = self._open.pop(fact.forecast_id, None)
        if asked is not None:
            self.forecasts.append(
                ForecastRow(
                    t_ns=asked.at,
                    order=asked.order,
                    answer_ns=fact.at - asked.at,
                    outcome=None,
                    status="failed",
                    reason=fact.reason,
                )
            )

    def _drain(self, order: Drain) -> None:
        """Note that a move of the last answer was made, if its first drain is ordered with that answer."""
        if self._clock.now != self._answered_ns:
            return
        for row in self._latest:
            move = None if row.outcome is None else row.outcome.move
            if move is not None and order.worker in move.sources:
                self._latest[0].made, row.made = False, True
