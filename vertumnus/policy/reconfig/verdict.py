"""What a controller is shown, and what it may answer: the contract between controllers and the composer."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from vertumnus.domain.cluster import Composition, CpGroup, Lattice
from vertumnus.domain.facts import ForecastFailed, ForecastFinished, TimerFired
from vertumnus.domain.move import Move
from vertumnus.domain.orders import AnyOrder
from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.policy.reconfig.moves import leaves_no_room, moves


class PoolView(NamedTuple):
    """What a window's end is judged on."""

    composition: Composition
    """Workers in service that no operator has drained."""
    busy: Collection[CpGroup]
    """Those that are in transition already."""
    drain_ns: Callable[[CpGroup], Nanoseconds]
    """Predicted time until a worker would be at a boundary."""
    reconcile_blocks: Callable[[Sequence[Move]], Sequence[float]]
    """Missing blocks of retained prefixes after each of some moves, weighted by recent access."""
    least_degree: int = 1
    """Of a worker that can hold the longest prompt that is known to come."""

    def moves(self, lattice: Lattice) -> list[Move]:
        """Return every legal move on *lattice* after which a worker can hold the longest prompt."""
        legal = moves(self.composition, lattice, self.busy)
        return [
            move for move in legal if not leaves_no_room(move, self.composition, self.least_degree, self.busy)
        ]


class Verdict(NamedTuple):
    """What a controller makes of something."""

    orders: Sequence[AnyOrder] = ()
    """To be told first: notes, forecasts, timers."""
    move: Move | None = None
    """What to begin now."""


class Controls(Protocol):
    """A controller as the composer drives it; it proposes, the composer begins."""

    @property
    def window_ns(self) -> Nanoseconds:
        """H: length of an observation window [ns]."""

    @property
    def config(self) -> Struct:
        """What it decides by."""

    def retune(self, config: Any) -> None:
        """Decide by *config*, a struct of the same type, from the end of this window on."""

    def note_routed(self, degree: int, uncached: Tokens, cached: Tokens, service_ns: Nanoseconds) -> None:
        """Count a request where it is first routed."""

    def note_transition(self, own: Move | None = None) -> None:
        """Note that the composition changes, by whomever; *own* is a move that it asked for, as it begins."""

    def close_window(self, due_ns: Nanoseconds, view: PoolView) -> Verdict:
        """End the window that is due at *due_ns* and say what follows."""

    def answered(self, fact: ForecastFinished | ForecastFailed, view: PoolView) -> Verdict:
        """Take what became of a forecast that it asked for."""

    def timer_fired(self, fact: TimerFired) -> Sequence[AnyOrder]:
        """Take a timer that it set, other than the window's; nothing for one that is not its own."""
