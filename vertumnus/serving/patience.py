"""Clients that give up: they cancel a request whose first token has not come so long after its arrival.

They stand between the loop and its engine, whose clock tells when a client's patience ends. A run whose
clients wait for ever has none of this.
"""

from heapq import heappop, heappush

from vertumnus.domain.facts import InputFact, RequestArrived, RequestCancelled, TimerFired
from vertumnus.domain.jobs import AnyOutcome
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds, RequestId
from vertumnus.serving.engine import Engine
from vertumnus.workers.fleet import Fleet

CLIENT = "client"
"""Who cancels."""

_TIMER = "patience"


class ImpatientClients:
    """An `Engine` whose ``next`` tells of cancellations, too, each at the instant at which patience ends.

    A first token that is told by then keeps its request; one that a retry made void does not. Of all that
    wait only the next to give up has a timer, which nobody else sees: most of them are served before.
    """

    def __init__(self, engine: Engine, fleet: Fleet, patience_ns: Nanoseconds) -> None:
        """Send the requests of *engine*, and those that *fleet* has already."""
        self._engine = engine
        self._fleet = fleet
        self._patience_ns = patience_ns
        self._waiting: list[tuple[Nanoseconds, RequestId]] = []
        """A heap of when each gives up; those served since are passed over when their time comes."""
        self._timer_ns: Nanoseconds | None = None
        """When the earliest timer fires; None where none is set."""
        self._told_ns: Nanoseconds = engine.now()
        self.now, self.schedule, self.post = engine.now, engine.schedule, engine.post
        self.submit, self.close = engine.submit, engine.close
        for request in fleet.awaiting_first_token():
            self._wait(request)

    def next(self) -> InputFact | AnyOutcome | None:
        """Return what happens next, as the engine does, or whose client has just given up."""
        while (given_up := self._given_up()) is None:
            event = self._engine.next()
            if type(event) is RequestArrived:
                self._wait(event.request)
            elif type(event) is TimerFired and event.name == _TIMER:
                if event.due_ns == self._timer_ns:  # else an earlier one was set after it
                    self._timer_ns, self._told_ns = None, event.at
                continue
            return event
        return given_up

    def _wait(self, request: Request) -> None:
        heappush(self._waiting, (request.arrival_ns + self._patience_ns, request.request_id))
        self._set_timer()

    def _given_up(self) -> RequestCancelled | None:
        """Return the next of those whose time had come when the last timer fired."""
        waiting, fleet = self._waiting, self._fleet
        if self._timer_ns is not None:
            return None
        while waiting and waiting[0][0] <= self._told_ns:
            _, request_id = heappop(waiting)
            if fleet.awaits_first_token(request_id):
                return RequestCancelled(self._told_ns, request_id, CLIENT)
        self._set_timer()
        return None

    def _set_timer(self) -> None:
        if not self._waiting:
            return
        due = self._waiting[0][0]
        if self._timer_ns is None or due < self._timer_ns:
            self._timer_ns = due
            self._engine.schedule(TimerFired(due, _TIMER, due), due)


def with_patience(engine: Engine, fleet: Fleet, patience_ns: Nanoseconds | None) -> Engine:
    """Return *engine* among clients that wait for *patience_ns*, or as it is where they wait for ever."""
    return engine if patience_ns is None else ImpatientClients(engine, fleet, patience_ns)
