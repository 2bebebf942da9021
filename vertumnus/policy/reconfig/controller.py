"""The cluster-level controller: windows become signals, signals become moves (sec. 6).

It always starts from the composition that it is shown, whoever made it so: a move by hand confuses
nothing. It only proposes; the control plane begins the move and tells it (`Trigger.note_transition`).
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

from vertumnus.domain.cluster import Composition, CpGroup, Lattice
from vertumnus.domain.move import Move
from vertumnus.domain.orders import NoteWindow
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.units import Nanoseconds, Tokens, to_ns
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.choose import choose
from vertumnus.policy.reconfig.config import AdviseController, ThresholdsController
from vertumnus.policy.reconfig.moves import moves
from vertumnus.policy.reconfig.post_check import post_check
from vertumnus.policy.reconfig.trigger import Signal, Trigger
from vertumnus.policy.reconfig.window import DemandWindow, WindowReport


class PoolView(NamedTuple):
    """What a window's end is judged on."""

    composition: Composition
    """Workers in service."""
    busy: Collection[CpGroup]
    """Those that are in transition already."""
    drain_ns: Callable[[CpGroup], Nanoseconds]
    """Predicted time until a worker would be at a boundary."""
    reconcile_blocks: Callable[[Move], float]
    """Missing blocks of retained prefixes after a move, weighted by recent access."""


class Verdict(NamedTuple):
    """What a window led to."""

    note: NoteWindow
    move: Move | None
    """What to begin now; None also when the controller only advises."""


class Controller:
    """Windows, trigger and choice of one pool."""

    def __init__(
        self,
        config: ThresholdsController | AdviseController,
        capacity: Capacity,
        prefill_time: PrefillTimeModel,
        lattice: Lattice,
        long_tokens: Tokens,
    ) -> None:
        """Judge by *capacity*; *long_tokens* is the configured bound in tokens as served.

        Raises ConfigError when kappa is missing for a degree of the lattice.
        """
        capacity.require(lattice.degrees)
        self._config = config
        self._acts = isinstance(config, ThresholdsController)
        self._capacity = capacity
        self._prefill_time = prefill_time
        self._lattice = lattice
        self._window = DemandWindow(0, long_tokens, config.long_fraction_by)
        self._trigger = Trigger(config, capacity)

    @property
    def config(self) -> ThresholdsController | AdviseController:
        """The thresholds in force."""
        return self._config

    @property
    def window_ns(self) -> Nanoseconds:
        """H: length of the windows that begin from now on [ns]."""
        return to_ns(self._config.window_s)

    def retune(self, config: ThresholdsController | AdviseController) -> None:
        """Judge by *config* from the end of this window on; what is long, and by what share, stays."""
        self._config = config
        self._trigger.retune(config)

    def note_routed(self, degree: int, uncached: Tokens, cached: Tokens, service_ns: Nanoseconds) -> None:
        """Count a request where it is first routed."""
        self._window.add(degree, uncached, cached, service_ns)

    def note_transition(self) -> None:
        """Note that the composition changes, by whomever."""
        self._trigger.note_transition()

    def close_window(self, due_ns: Nanoseconds, view: PoolView) -> Verdict:
        """End the window that is due at *due_ns* and say what follows."""
        report = self._window.close(due_ns)
        signal = self._trigger.observe(report, view.composition)
        move = self._choose(signal, report, view)
        return Verdict(_note(report, signal, move), move if self._acts else None)

    def _choose(self, signal: Signal, report: WindowReport, view: PoolView) -> Move | None:
        if signal.direction is None or signal.cause is None:
            return None
        admits = post_check(
            report, view.composition, signal.cause, self._config, self._capacity, self._prefill_time
        )
        legal = moves(view.composition, self._lattice, view.busy)
        return choose(legal, signal.direction, view.drain_ns, view.reconcile_blocks, admits)


def _note(report: WindowReport, signal: Signal, move: Move | None) -> NoteWindow:
    action = "" if move is None else str(move)
    reason = signal.reason
    if signal.direction is not None and move is None:
        reason += "; no legal move leaves enough capacity"
    return NoteWindow(
        index=report.index,
        start_ns=report.start_ns,
        end_ns=report.end_ns,
        requests=report.requests,
        demand_ns=report.demand_ns,
        capacity_ns=to_ns(signal.capacity_s),
        long_fraction=report.long_fraction,
        signal=signal.seen,
        persistence=signal.persistence,
        action=action,
        reason=reason,
    )
