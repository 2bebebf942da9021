"""Fold of the controller's notes into one row per observation window (sec. 6.1-6.2)."""

from collections.abc import Callable

from msgspec import Struct

from vertumnus.domain.cluster import Composition
from vertumnus.domain.orders import NoteWindow
from vertumnus.domain.units import SECOND, Nanoseconds
from vertumnus.records.clock import Clock
from vertumnus.records.timeline import Handlers


class WindowRow(Struct, frozen=True):
    """One window as the controller noted it, and the pool at that time."""

    t_ns: Nanoseconds
    note: NoteWindow
    composition: Composition
    """Workers in service, before the move that the note begins."""

    @property
    def requests_per_s(self) -> float | None:
        """Arrivals over the length of the window; None for one shorter than a second."""
        span = self.note.end_ns - self.note.start_ns
        return self.note.requests * SECOND / span if span >= SECOND else None

    @property
    def utilisation(self) -> float | None:
        """Demand over capacity; None without capacity."""
        return self.note.demand_ns / self.note.capacity_ns if self.note.capacity_ns else None


class WindowList:
    """The windows of a run, in order."""

    def __init__(self, clock: Clock, composition: Callable[[], Composition]) -> None:
        """Take what says which workers are in service at the time of the call."""
        self.windows: list[WindowRow] = []
        self.handlers: Handlers = {NoteWindow: self._noted}
        self._clock = clock
        self._composition = composition

    def _noted(self, order: NoteWindow) -> None:
        self.windows.append(WindowRow(self._clock.now, order, self._composition()))
