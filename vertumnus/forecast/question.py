"""What a forecast is made of: a frozen pool, the moves to try, the arrivals to come, and assumed times."""

from collections.abc import Callable
from typing import NamedTuple

from vertumnus.domain.errors import VertumnusError
from vertumnus.domain.link import LinkConfig
from vertumnus.domain.move import Move
from vertumnus.domain.orders import Forecast
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.policy.recent import Recurrence, as_next
from vertumnus.serving.snapshot import Snapshot, take_snapshot
from vertumnus.sim.durations import Durations
from vertumnus.workers.fleet import Fleet


class Assumptions(NamedTuple):
    """How long things take in a forecast, the profile's predictions without noise; how long clients wait."""

    profile: ModelProfile
    link: LinkConfig
    block_tokens: Tokens
    switch_s: float
    """From sending a control record to a rank's acknowledgement [s]."""
    patience_ns: Nanoseconds | None = None
    """Clients cancel requests that have no first token so long after their arrival; None: never [ns]."""

    def durations(self) -> Durations:
        """Return the times of jobs."""
        return Durations(
            self.profile, 0, 0.0, switch_s=self.switch_s, link=self.link, block_tokens=self.block_tokens
        )


class Question(NamedTuple):
    """All that an answer depends on; plain data, for another process if need be."""

    snapshot: Snapshot
    moves: tuple[Move, ...]
    future: tuple[Request, ...]
    """Requests that arrive after the snapshot."""
    assumptions: Assumptions


class NoSnapshot(VertumnusError):
    """A hindsight was asked for of a forecast that was not kept."""


class Questions:
    """Puts Forecast orders as questions about one pool."""

    def __init__(self, fleet: Fleet, control: ControlPlane, assume: Callable[[], Assumptions]) -> None:
        """Ask about the pool of *fleet* and *control*; *assume* is called anew for each question."""
        self._fleet = fleet
        self._control = control
        self._assume = assume
        self._kept: dict[int, Snapshot] = {}

    def put(self, order: Forecast, now: Nanoseconds) -> Question:
        """Freeze the pool as it is at *now*, between two events, and return what *order* asks.

        Raises NoSnapshot when the order is the hindsight of a forecast that was not kept.
        """
        if order.hindsight_of is not None:
            return self._in_hindsight(order, order.hindsight_of)
        snapshot = take_snapshot(self._fleet, self._control, now)
        if order.is_kept:
            self._kept[order.forecast_id] = snapshot
        future = near_future(self._control, now, Recurrence(order.span_ns, order.repeats, order.load))
        return Question(snapshot, order.moves, future, self._assume())

    def _in_hindsight(self, order: Forecast, forecast_id: int) -> Question:
        snapshot = self._kept.pop(forecast_id, None)
        if snapshot is None:
            raise NoSnapshot(f"the pool of forecast {forecast_id} was not kept")
        until = snapshot.at_ns + order.span_ns
        came = self._control.requests.recent.between(snapshot.at_ns, until)
        return Question(snapshot, order.moves, tuple(each.request for each in came), self._assume())


def near_future(control: ControlPlane, now: Nanoseconds, recurrence: Recurrence) -> tuple[Request, ...]:
    """Return what *recurrence* makes of the arrivals before *now*; a younger run has a shorter past."""
    past = recurrence._replace(span_ns=min(recurrence.span_ns, now))
    return tuple(as_next(control.requests.recent.between(now - past.span_ns, now), now, past))
