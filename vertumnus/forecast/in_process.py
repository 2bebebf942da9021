"""Forecasts of a simulated run: computed on the spot; virtual time waits."""

from vertumnus.domain.facts import ForecastFailed, ForecastFinished
from vertumnus.domain.orders import Forecast
from vertumnus.domain.units import Nanoseconds
from vertumnus.forecast.question import Questions
from vertumnus.forecast.trial import answer
from vertumnus.serving.engine import Engine


class InProcessForecasts:
    """Carries out Forecast orders for a loop whose clock stands still meanwhile."""

    def __init__(self, questions: Questions, engine: Engine, takes_ns: Nanoseconds) -> None:
        """Answer through *engine*, *takes_ns* after the order."""
        self._questions = questions
        self._engine = engine
        self._takes_ns = takes_ns

    def __call__(self, order: Forecast, now: Nanoseconds) -> None:
        """Answer *order*."""
        at = now + self._takes_ns
        fact: ForecastFinished | ForecastFailed
        try:
            fact = ForecastFinished(at, order.forecast_id, answer(self._questions.put(order, now)))
        except Exception as error:  # whatever is wrong with a forecast, the run goes on without it
            fact = ForecastFailed(at, order.forecast_id, f"{type(error).__name__}: {error}")
        self._engine.schedule(fact, at)
