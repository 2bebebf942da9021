"""What came after a move: service in the minute since, beside that in the minute before."""

from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import RequestEnded
from vertumnus.domain.orders import CloseTransition
from vertumnus.domain.units import SECOND, Nanoseconds
from vertumnus.records.clock import Clock
from vertumnus.records.timeline import Handlers
from vertumnus_console.totals import Service, Totals

SPAN_NS: Nanoseconds = 60 * SECOND
"""What is compared before and after."""


class After(NamedTuple):
    """A move that is a minute old. Demand may have changed as well: what differs need not be its effect."""

    t_ns: Nanoseconds
    targets: tuple[CpGroup, ...]
    before: Service
    since: Service


class _Open(NamedTuple):
    t_ns: Nanoseconds
    targets: tuple[CpGroup, ...]
    before: Service


class Aftermath:
    """Fold of moves and ended requests; its handlers come after those of the *totals* that it reads."""

    def __init__(self, totals: Totals, clock: Clock) -> None:
        self.afters: list[After] = []
        self.handlers: Handlers = {CloseTransition: self._closed, RequestEnded: self._ended}
        self._totals = totals
        self._clock = clock
        self._open: list[_Open] = []

    def _closed(self, order: CloseTransition) -> None:
        if order.outcome == "committed":
            now = self._clock.now
            self._open.append(_Open(now, order.targets, self._totals.recent(now, SPAN_NS)))

    def _ended(self, fact: RequestEnded) -> None:
        while self._open and fact.at >= self._open[0].t_ns + SPAN_NS:
            moved = self._open.pop(0)
            since = self._totals.recent(fact.at, fact.at - moved.t_ns)
            self.afters.append(After(fact.at, moved.targets, moved.before, since))
