"""`what_if`: at the end of every window a forecast of staying, of splits and of merges decides.

Which split, and which merge, is looked at is chosen as in `choose`: least drain, then least to reconcile.
A move is made when what the mean TTFT, drain and backlog included, would have gained by one of its kind adds
up to more than ``min_gain`` (`evidence`), and ``persistence`` windows in a row speak for it. It starts from
the composition that it is shown, at the question and again at the answer.
"""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from vertumnus.domain.cluster import Composition, Lattice
from vertumnus.domain.facts import ForecastFailed, ForecastFinished, TimerFired
from vertumnus.domain.forecast import ForecastOutcome
from vertumnus.domain.move import Direction, Move
from vertumnus.domain.orders import AnyOrder, Forecast, NoteWindow
from vertumnus.domain.units import SECOND, Nanoseconds, Tokens, to_ns
from vertumnus.domain.wording import counted
from vertumnus.policy.reconfig.choose import ranked
from vertumnus.policy.reconfig.config import WhatIfController
from vertumnus.policy.reconfig.evidence import Evidence, Gain
from vertumnus.policy.reconfig.past import Past
from vertumnus.policy.reconfig.verdict import PoolView, Verdict
from vertumnus.policy.reconfig.window import DemandWindow, WindowReport


class _Question(NamedTuple):
    forecast_id: int
    report: WindowReport
    composition: Composition


class WhatIf:
    """Asks for forecasts and decides on their answers; at most one is open."""

    def __init__(self, config: WhatIfController, lattice: Lattice, long_tokens: Tokens) -> None:
        """Follow *config*; *long_tokens* is the bound of long requests in tokens as served."""
        self._config = config
        self._lattice = lattice
        self._window = DemandWindow(0, long_tokens, config.long_fraction_by)
        self._past = Past(_windows(config))
        self._open: _Question | None = None
        self._last_id = 0
        self._cooling = 0
        self._evidence = Evidence()
        self._last: Direction | None = None
        """The kind of the last move that it made for this demand; a new demand may well want the opposite."""
        self._turns = 0
        """Moves for this demand that went the other way than the one before."""

    @property
    def config(self) -> WhatIfController:
        """The parameters in force."""
        return self._config

    @property
    def window_ns(self) -> Nanoseconds:
        """H: length of the windows that begin from now on [ns]."""
        return to_ns(self._config.window_s)

    def retune(self, config: WhatIfController) -> None:
        """Decide by *config* from the end of this window on; what is long, and by what share, stays."""
        self._config = config
        self._past.reach(_windows(config))

    def note_routed(self, degree: int, uncached: Tokens, cached: Tokens, service_ns: Nanoseconds) -> None:
        """Count a request where it is first routed."""
        self._window.add(degree, uncached, cached, service_ns)

    def note_transition(self, own: Move | None = None) -> None:
        """Note that the composition changes, by whomever: what has persisted is forgotten."""
        self._cooling = self._config.cooldown_windows
        self._evidence.forget()
        if own is not None:
            self._turns += self._is_turn(own.kind)
            self._last = own.kind

    def close_window(self, due_ns: Nanoseconds, view: PoolView) -> Verdict:
        """End the window and ask for a forecast, unless there is a reason not to, which is noted."""
        report = self._window.close(due_ns)
        if self._past.note(report.requests):
            self._last, self._turns = None, 0
            self._evidence.forget()
        candidates = self._candidates(view)
        reason = self._reason_not_to_ask(view, candidates)
        if reason:
            return Verdict((self._note(report, reason),))
        self._last_id += 1
        self._open = _Question(self._last_id, report, view.composition)
        span_ns = self._past.windows_of(self._config.replay_requests) * self.window_ns
        repeats = max(1, -(-to_ns(self._config.horizon_s) // span_ns))
        asked = Forecast(self._last_id, tuple(candidates), span_ns, repeats, self._config.load)
        return Verdict((asked,))

    def answered(self, fact: ForecastFinished | ForecastFailed, view: PoolView) -> Verdict:
        """Decide the window that *fact* answers; an answer that nobody waits for changes nothing."""
        question = self._open
        if question is None or fact.forecast_id != question.forecast_id:
            return Verdict()
        self._open = None
        if isinstance(fact, ForecastFailed):
            return self._undecided(question, f"no forecast: {fact.reason}")
        if view.busy or question.composition != view.composition:
            return self._undecided(question, "the composition changed while the forecast was made")
        return self._decide(question, fact.outcomes)

    def timer_fired(self, fact: TimerFired) -> Sequence[AnyOrder]:
        """Make nothing of it: this controller sets no timers."""
        return ()

    def _undecided(self, question: _Question, reason: str) -> Verdict:
        self._evidence.forget()
        return Verdict((self._note(question.report, reason, question),))

    def _decide(self, question: _Question, outcomes: Sequence[ForecastOutcome]) -> Verdict:
        best, config = gains(outcomes), self._config
        self._evidence.add(best)
        leading = self._evidence.leading()
        shown = self._evidence.of(leading)
        turns = leading is not None and self._is_turn(leading)
        needed = config.min_gain * (config.turn_factor ** (self._turns + 1) if turns else 1.0)
        is_due = shown.gain > needed and shown.windows >= config.persistence
        move = best[leading].move if leading is not None and is_due else None
        return Verdict((self._note(question.report, describe(outcomes), question, move),), move)

    def _is_turn(self, kind: Direction) -> bool:
        return self._last is not None and kind != self._last

    def _candidates(self, view: PoolView) -> list[Move]:
        legal = view.moves(self._lattice)
        most = self._config.candidates
        return [
            move
            for alike in ([m for m in legal if m.kind == "split"], [m for m in legal if m.kind == "merge"])
            for move in islice(ranked(alike, view.drain_ns, view.reconcile_blocks), most)
        ]

    def _reason_not_to_ask(self, view: PoolView, candidates: Sequence[Move]) -> str:
        if self._cooling:
            self._cooling -= 1
            return f"cooling down, {counted(self._cooling, 'more window')}"
        if self._open is not None:
            return f"the forecast of window {self._open.report.index} is still being made"
        if view.busy:
            return "a transition is under way"
        return "" if candidates else "no move is legal"

    def _note(
        self, report: WindowReport, reason: str, question: _Question | None = None, move: Move | None = None
    ) -> NoteWindow:
        leading = self._evidence.leading()
        return NoteWindow(
            index=report.index,
            start_ns=report.start_ns,
            end_ns=report.end_ns,
            requests=report.requests,
            demand_ns=report.demand_ns,
            capacity_ns=None,
            long_fraction=report.long_fraction,
            signal=leading,
            persistence=self._evidence.of(leading).windows,
            action="" if move is None else str(move),
            reason=reason,
            forecast_id=None if question is None else question.forecast_id,
        )


def _windows(config: WhatIfController) -> int:
    """Return how many windows the past reaches back at most."""
    return max(1, int(config.replay_s / config.window_s))


def gains(outcomes: Sequence[ForecastOutcome]) -> dict[Direction, Gain]:
    """Return the move with the lowest mean TTFT of each kind against staying, the first of *outcomes*.

    A move that leaves somebody without a first token who would get one otherwise is none. Nothing was
    gained where nothing was counted.
    """
    stay, *tried = outcomes
    best: dict[Direction, Gain] = {}
    for each in tried:
        if not stay.ttft_mean_ns or each.ttft_mean_ns is None or each.move is None:
            continue
        gain = Gain(each.move, 1.0 - each.ttft_mean_ns / stay.ttft_mean_ns)
        known = best.get(each.move.kind)
        if each.served >= stay.served and (known is None or gain.share > known.share):
            best[each.move.kind] = gain
    return best


def describe(outcomes: Sequence[ForecastOutcome]) -> str:
    """Return the predicted mean TTFT of each outcome, in words."""
    return "; ".join(f"{each.move or 'stay'}: {_mean(each)}" for each in outcomes)


def _mean(outcome: ForecastOutcome) -> str:
    if outcome.ttft_mean_ns is None:
        return "nothing to serve" if not outcome.requests else f"none of {outcome.requests} served"
    missed = outcome.requests - outcome.served
    return f"{outcome.ttft_mean_ns / SECOND:.3f} s" + (f", {missed} unserved" if missed else "")
