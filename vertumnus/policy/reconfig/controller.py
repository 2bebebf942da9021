"""The cluster-level controller: windows become signals, signals become moves (sec. 6).

It always starts from the composition that it is shown, whoever made it so: a move by hand confuses
nothing. It only proposes; the composer begins the move and tells it (`Trigger.note_transition`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from vertumnus.domain.cluster import Lattice
from vertumnus.domain.facts import ForecastFailed, ForecastFinished, TimerFired
from vertumnus.domain.move import Move
from vertumnus.domain.orders import AnyOrder, NoteWindow
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.units import Nanoseconds, Tokens, to_ns
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.choose import choose
from vertumnus.policy.reconfig.config import Thresholds
from vertumnus.policy.reconfig.post_check import post_check
from vertumnus.policy.reconfig.trigger import Signal, Trigger
from vertumnus.policy.reconfig.verdict import PoolView, Verdict
from vertumnus.policy.reconfig.window import DemandWindow, WindowReport


class Judged(NamedTuple):
    """What a window led to."""

    note: NoteWindow
    move: Move | None
    """What the rules ask for."""


class Controller:
    """Windows, trigger and choice of one pool, as published."""

    def __init__(
        self,
        config: Thresholds,
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
        self._capacity = capacity
        self._prefill_time = prefill_time
        self._lattice = lattice
        self._window = DemandWindow(0, long_tokens, config.long_fraction_by)
        self._trigger = Trigger(config, capacity)

    @property
    def config(self) -> Thresholds:
        """The thresholds in force."""
        return self._config

    @property
    def window_ns(self) -> Nanoseconds:
        """H: length of the windows that begin from now on [ns]."""
        return to_ns(self._config.window_s)

    def retune(self, config: Thresholds) -> None:
        """Judge by *config* from the end of this window on; what is long, and by what share, stays."""
        self._config = config
        self._trigger.retune(config)

    def note_routed(self, degree: int, uncached: Tokens, cached: Tokens, service_ns: Nanoseconds) -> None:
        """Count a request where it is first routed."""
        self._window.add(degree, uncached, cached, service_ns)

    def note_transition(self, own: Move | None = None) -> None:
        """Note that the composition changes, by whomever."""
        self._trigger.note_transition()

    def close_window(self, due_ns: Nanoseconds, view: PoolView) -> Verdict:
        """End the window that is due at *due_ns* and say what follows."""
        note, move = self.judge(due_ns, view)
        return Verdict((note,), move)

    def answered(self, fact: ForecastFinished | ForecastFailed, view: PoolView) -> Verdict:
        """Make nothing of it: this controller asks for no forecasts."""
        return Verdict()

    def timer_fired(self, fact: TimerFired) -> Sequence[AnyOrder]:
        """Make nothing of it: this controller sets no timers."""
        return ()

    def judge(self, due_ns: Nanoseconds, view: PoolView) -> Judged:
        """End the window that is due at *due_ns* and say what the rules ask for."""
        report = self._window.close(due_ns)
        signal = self._trigger.observe(report, view.composition)
        move = self._choose(signal, report, view)
        return Judged(_note(report, signal, move), move)

    def _choose(self, signal: Signal, report: WindowReport, view: PoolView) -> Move | None:
        if signal.direction is None or signal.cause is None:
            return None
        admits = post_check(
            report, view.composition, signal.cause, self._config, self._capacity, self._prefill_time
        )
        legal = view.moves(self._lattice)
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
