"""`advise`: what the thresholds would do, a forecast of it, and later whether it would have paid.

Nothing is moved. At a window's end at which the rules ask for a move, a forecast of it is asked for; when
the time that it looked at has passed, the same is asked again from the same moment, with the arrivals
that have really come since.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from vertumnus.domain.facts import ForecastFailed, ForecastFinished, TimerFired
from vertumnus.domain.move import Move
from vertumnus.domain.orders import AnyOrder, Forecast, SetTimer
from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.policy.reconfig.config import Thresholds
from vertumnus.policy.reconfig.controller import Controller
from vertumnus.policy.reconfig.verdict import PoolView, Verdict


class Adviser:
    """Watches with the eyes of a controller and keeps its hands still."""

    def __init__(self, controller: Controller, span_ns: Nanoseconds) -> None:
        """Advise what *controller* would do, with forecasts over *span_ns*."""
        self._controller = controller
        self._span_ns = span_ns
        self._last_id = 0
        self._advised: dict[int, Move] = {}
        """Moves whose time has not passed, by forecast."""

    @property
    def config(self) -> Thresholds:
        """The thresholds in force."""
        return self._controller.config

    @property
    def window_ns(self) -> Nanoseconds:
        """H: length of the windows that begin from now on [ns]."""
        return self._controller.window_ns

    def retune(self, config: Thresholds) -> None:
        """Judge by *config* from the end of this window on."""
        self._controller.retune(config)

    def note_routed(self, degree: int, uncached: Tokens, cached: Tokens, service_ns: Nanoseconds) -> None:
        """Count a request where it is first routed."""
        self._controller.note_routed(degree, uncached, cached, service_ns)

    def note_transition(self, own: Move | None = None) -> None:
        """Note that somebody changes the composition."""
        self._controller.note_transition()

    def close_window(self, due_ns: Nanoseconds, view: PoolView) -> Verdict:
        """End the window, and ask what the move that the rules want would lead to."""
        note, move = self._controller.judge(due_ns, view)
        if move is None:
            return Verdict((note,))
        number = self._next_id()
        self._advised[number] = move
        asked = Forecast(number, (move,), self._span_ns, is_kept=True)
        timer = SetTimer(hindsight_timer(number), due_ns + self._span_ns)
        return Verdict((replace(note, forecast_id=number), asked, timer))

    def answered(self, fact: ForecastFinished | ForecastFailed, view: PoolView) -> Verdict:
        """Make nothing of it: the answer stands in the log."""
        return Verdict()

    def timer_fired(self, fact: TimerFired) -> Sequence[AnyOrder]:
        """Ask whether a move would have paid, now that its time has passed."""
        number = forecast_of(fact.name)
        move = None if number is None else self._advised.pop(number, None)
        if move is None:
            return ()
        return (Forecast(self._next_id(), (move,), self._span_ns, hindsight_of=number),)

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id


def hindsight_timer(forecast_id: int) -> str:
    """Return the name of the timer at which the time that a forecast looked at has passed."""
    return f"hindsight {forecast_id}"


def forecast_of(timer: str) -> int | None:
    """Return the forecast that a hindsight timer is for; None for another timer."""
    verb, _, number = timer.partition(" ")
    return int(number) if verb == "hindsight" else None
