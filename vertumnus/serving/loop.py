"""The one loop that joins an engine, the fleet and the control plane, and tells everything to a recorder.

A request's path goes down once and comes back only as facts through here. What one event causes is
delivered completely, first in first out, before the engine is asked for the next thing: otherwise
the policy would see effects before their causes.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias

from vertumnus.domain.codec import FACT, INPUT, ORDER, Body
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.facts import AnyFact, InputFact, RequestArrived, RequestEnded, TimerFired
from vertumnus.domain.jobs import AnyOutcome, Outcome
from vertumnus.domain.orders import AnyOrder, Forecast, SetTimer
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds
from vertumnus.domain.wording import counted
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.serving.engine import Engine
from vertumnus.serving.follow_ups import FollowUps
from vertumnus.workers.fleet import Effects, Fleet

Record: TypeAlias = Callable[[int, Body], object]
"""Takes (source, body) of every input, fact and order, in the order in which they happen."""

Ask: TypeAlias = Callable[[Forecast, Nanoseconds], object]
"""Takes a Forecast order and the time [ns]; the answer comes later, as an input fact through the engine."""


class Loop:
    """Runs a pool over a stream of requests until each of them has ended."""

    def __init__(
        self,
        engine: Engine,
        fleet: Fleet,
        control: ControlPlane,
        record: Record,
        forecast: Ask | None = None,
        follow_ups: FollowUps | None = None,
    ) -> None:
        """Join the parts; *forecast* carries out Forecast orders, which a replay finds answered.

        *follow_ups* arrive beside the arrivals that are served, each after the request that it continues.
        """
        self._engine = engine
        self._fleet = fleet
        self._control = control
        self._record = record
        self._forecast = forecast
        self._follow_ups = follow_ups or FollowUps({})
        self._asked: list[Forecast] = []
        self._facts: deque[AnyFact] = deque()
        self._arrivals: Iterator[Request] | None = None
        self.arrived = 0
        self.ended = 0

    @property
    def can_serve(self) -> bool:
        """Whether the fleet has anybody left who can serve a request."""
        return self._fleet.can_serve

    def serve(self, arrivals: Iterator[Request], after_event: Callable[[], object] | None = None) -> None:
        """Serve *arrivals*, which come in order of arrival, until the last of them has ended.

        *after_event* is called between events, where the books must balance. Raises InvariantError
        when requests are open and nothing is under way that could end them.
        """
        self._arrivals = arrivals
        self.start()
        self._schedule_arrival()
        while self._arrivals is not None or self.ended < self.arrived or self._follow_ups.left:
            event = self._engine.next()
            if event is None:
                raise InvariantError(
                    f"nothing is under way and "
                    f"{counted(self.arrived - self.ended, 'request is', 'requests are')} open"
                )
            self.take(event)
            if after_event is not None:
                after_event()

    def start(self) -> None:
        """Carry out the orders that come before the first event."""
        self._obey(self._control.start(), 0)

    def take(self, event: InputFact | AnyOutcome) -> None:
        """Deliver one event and everything that it causes."""
        self._record(INPUT, event)
        if isinstance(event, Outcome):
            self._spread(self._fleet.conclude(event))
        else:
            effects = self._fleet.note(event)
            if type(event) is RequestArrived:
                self.arrived += 1
                if not self._follow_ups.note_arrival(event.request.request_id):
                    self._schedule_arrival()
            elif type(event) is TimerFired:
                self._check_alive()
            self._obey(self._control.handle(event), event.at)
            self._spread(effects)
        self._deliver()
        if self._asked:
            self._ask(event.at)

    def _deliver(self) -> None:
        facts, record, handle = self._facts, self._record, self._control.handle
        while facts:
            fact = facts.popleft()
            record(FACT, fact)
            if type(fact) is RequestEnded:
                self.ended += 1
                for request in self._follow_ups.released_by(fact):
                    self._schedule(request)
            orders = handle(fact)
            if orders:
                self._obey(orders, fact.at)

    def _obey(self, orders: list[AnyOrder], now: Nanoseconds) -> None:
        for order in orders:
            self._record(ORDER, order)
            if type(order) is SetTimer:
                self._engine.schedule(TimerFired(order.at_ns, order.name, order.at_ns), order.at_ns)
            elif type(order) is Forecast:
                self._asked.append(order)
            else:
                self._spread(self._fleet.carry_out(order, now))

    def _ask(self, now: Nanoseconds) -> None:
        # not before the event is through: a forecast begins where the pool stands between two events
        asked, self._asked = self._asked, []
        if self._forecast is not None:
            for order in asked:
                self._forecast(order, now)

    def _spread(self, effects: Effects) -> None:
        self._facts.extend(effects.facts)
        for job in effects.jobs:
            self._engine.submit(job)

    def _schedule_arrival(self) -> None:
        if self._arrivals is None:
            return
        request = next(self._arrivals, None)
        if request is None:
            self._arrivals = None
        else:
            self._schedule(request)

    def _schedule(self, request: Request) -> None:
        self._engine.schedule(RequestArrived(request.arrival_ns, request), request.arrival_ns)

    def _check_alive(self) -> None:
        # a timer always follows the last one, so an idle pool would tick for ever
        stuck = self._arrivals is None and not self._fleet.is_busy and self.ended < self.arrived
        if stuck:
            raise InvariantError(
                f"no job is under way and "
                f"{counted(self.arrived - self.ended, 'request is', 'requests are')} open"
            )
