"""Changes of composition: who asks for them, and what they change in the books (sec. 6)."""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from vertumnus.domain.cluster import CpGroup, Lattice
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import AnyFact, ForecastFailed, ForecastFinished, OperatorActed, TimerFired
from vertumnus.domain.move import Direction, Move
from vertumnus.domain.orders import Answer, AnyOrder, CloseTransition, NoteWindow, SetTimer
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.profile import Kappa
from vertumnus.domain.units import Nanoseconds, to_ns
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.lacking import lacking_after
from vertumnus.policy.prefix.residency import Lost
from vertumnus.policy.prefixes import Prefixes
from vertumnus.policy.reconfig.advise import Adviser
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.config import (
    SWITCH_TIMEOUT_S,
    AdviseController,
    ControllerConfig,
    ManualController,
    OffController,
    Thresholds,
    WhatIfController,
)
from vertumnus.policy.reconfig.controller import Controller
from vertumnus.policy.reconfig.mode import Mode, ModeSwitch, configured_mode
from vertumnus.policy.reconfig.moves import check_move, leaves_no_room
from vertumnus.policy.reconfig.transition import Transition, Transitions
from vertumnus.policy.reconfig.verdict import Controls, PoolView, Verdict
from vertumnus.policy.reconfig.what_if import WhatIf

WINDOW = "window"
"""Timer of the end of an observation window (sec. 6.1)."""


class Books(Struct, frozen=True):
    """What a change of composition changes."""

    pool: PoolState
    ledger: Ledger
    prefixes: Prefixes


class Composer:
    """Begins moves, follows their transitions, and puts the new workers into the books."""

    def __init__(
        self,
        books: Books,
        lattice: Lattice,
        switch_timeout_ns: Nanoseconds,
        controller: Controls | None,
        mode: ModeSwitch,
    ) -> None:
        """Follow *controller*, if there is one and *mode* lets it."""
        self._books = books
        self.lattice = lattice
        self._transitions = Transitions(switch_timeout_ns)
        self.controller = controller
        self.mode = mode

    @property
    def is_changing(self) -> bool:
        """Whether a transition is under way."""
        return len(self._transitions) > 0

    @property
    def busy(self) -> frozenset[CpGroup]:
        """The workers that take part in a transition, before and after."""
        return self._transitions.busy

    @property
    def transitions(self) -> tuple[Transition, ...]:
        """Those under way, in order of their epochs."""
        return self._transitions.under_way

    def start(self) -> list[AnyOrder]:
        """Return the orders that come before the first fact."""
        return [] if self.controller is None else [SetTimer(WINDOW, self.controller.window_ns)]

    def operator_acted(self, fact: OperatorActed) -> list[AnyOrder]:
        """Answer a wish for a move or a mode and see to it. Raises ConfigError when it is illegal."""
        return [Answer(fact.action_id, True, ""), *self._comply(fact)]

    def legal_move(self, kind: Direction, workers: Collection[CpGroup]) -> Move:
        """Return the move that *workers* can make now. Raises ConfigError with every reason against it."""
        self._refuse_held(kind, workers)
        pool = self._books.pool
        move = check_move(pool.serving, self.lattice, kind, workers, self.busy)
        if leaves_no_room(move, pool.in_routing, pool.least_degree, self.busy):
            raise ConfigError(f"{kind} {move.sources[0]}: {pool.last_room}")
        return move

    def forecast_ended(self, fact: ForecastFinished | ForecastFailed) -> list[AnyOrder]:
        """Tell the controller what became of a forecast and do what it makes of it."""
        if self.controller is None:
            return []
        return self._follow(self.controller.answered(fact, self._view()), fact.at)

    def timer_fired(self, fact: TimerFired) -> list[AnyOrder]:
        """Take a timer: a window's, a transition's, or one of the controller's own."""
        if self.controller is None:
            return self.handle(fact)
        if fact.name != WINDOW:
            return [*self.controller.timer_fired(fact), *self.handle(fact)]
        verdict = self.controller.close_window(fact.due_ns, self._view())
        return self._follow(verdict, fact.due_ns, SetTimer(WINDOW, fact.due_ns + self.controller.window_ns))

    def silence(self) -> None:
        """Ask for nothing from here on, but take what an operator wants: the copy that a forecast tries."""
        self.controller = None
        self.mode = ModeSwitch(Mode.MANUAL)

    def handle(self, fact: AnyFact) -> list[AnyOrder]:
        """Take a fact that may move a transition on; the books are changed when one closes."""
        orders = self._transitions.handle(fact)
        for order in orders:
            if isinstance(order, CloseTransition):
                self._close(order, fact.at)
        return orders

    def _comply(self, fact: OperatorActed) -> list[AnyOrder]:
        """Do what an operator wants. Raises ConfigError, and changes nothing, when it is not legal."""
        if fact.action == "auto" or fact.action == "manual" or fact.action == "off":
            self.mode.turn(fact.action)
            return []
        assert fact.action in ("split", "merge")
        self.mode.check_move_by_hand(fact.at)
        move = self.legal_move(fact.action, fact.workers)
        self.mode.note_move_by_hand(fact.at)
        return self._begin(move)

    def _view(self) -> PoolView:
        pool = self._books.pool
        return PoolView(pool.in_routing, self.busy, self._drain, self._reconcile_blocks, pool.least_degree)

    def _follow(self, verdict: Verdict, now: Nanoseconds, *then: AnyOrder) -> list[AnyOrder]:
        """Return the orders of *verdict*, *then*, and those of its move unless the mode forbids it."""
        orders, move = verdict
        if move is None:
            return [*orders, *then]
        why_not = self.mode.why_not(now)
        if why_not is not None:
            return [*(_left(order, move, why_not) for order in orders), *then]
        return [*orders, *then, *self._begin(move, own=move)]

    def _begin(self, move: Move, own: Move | None = None) -> list[AnyOrder]:
        orders = self._transitions.begin(move)
        for group in move.sources:  # no candidate from this moment on (sec. 6.2)
            self._books.pool.workers[group].draining = f"draining for a {move.kind}"
        if self.controller is not None:
            self.controller.note_transition(own)
        return orders

    def _close(self, order: CloseTransition, now: Nanoseconds) -> None:
        books = self._books
        if self.controller is not None:
            self.controller.note_transition()
        if order.outcome == "reopened":
            for group in order.sources:
                books.pool.workers[group].draining = None
            return
        books.prefixes.reconciler.recompose(order)
        books.pool.replace(order.sources, order.targets, order.reason or None)
        books.prefixes.index.recompose(books.pool.groups)
        books.ledger.recompose(books.pool.groups)
        if order.outcome == "failed":
            lost = sum(group.mask for group in order.targets)
            books.prefixes.residency.report((Lost(lost),), now)

    def _refuse_held(self, kind: Direction, workers: Collection[CpGroup]) -> None:
        for worker in workers:
            state = self._books.pool.workers.get(worker)
            if state is not None and state.held_by is not None:
                raise ConfigError(f"{kind} {worker}: it is drained by {state.held_by}; reopen it first")

    def _drain(self, worker: CpGroup) -> Nanoseconds:
        return self._books.ledger.running(worker)

    def _reconcile_blocks(self, moves: Sequence[Move]) -> list[float]:
        prefixes = self._books.prefixes
        return lacking_after(moves, prefixes.index, prefixes.statistics.demand)


def compose(
    books: Books,
    lattice: Lattice,
    prefill_time: PrefillTimeModel,
    config: ControllerConfig,
    kappa: Mapping[int, Kappa],
    token_scale: float,
) -> Composer:
    """Return the composer that *config* asks for; *token_scale* scales its bound of long requests.

    Raises ConfigError when kappa is missing for a degree that the controller may have to judge.
    """
    hold_s = config.hold_s if isinstance(config, Thresholds | WhatIfController) else 0.0
    mode = ModeSwitch(configured_mode(config), to_ns(hold_s))
    timeout_s = SWITCH_TIMEOUT_S if isinstance(config, OffController) else config.switch_timeout_s
    controller = _controller(config, lattice, prefill_time, kappa, token_scale)
    return Composer(books, lattice, to_ns(timeout_s), controller, mode)


def _controller(
    config: ControllerConfig,
    lattice: Lattice,
    prefill_time: PrefillTimeModel,
    kappa: Mapping[int, Kappa],
    token_scale: float,
) -> Controls | None:
    if isinstance(config, OffController | ManualController):
        return None
    long_tokens = max(1, round(config.long_tokens * token_scale))
    if isinstance(config, WhatIfController):
        return WhatIf(config, lattice, long_tokens)
    controller = Controller(config, Capacity(kappa), prefill_time, lattice, long_tokens)
    return Adviser(controller, to_ns(config.replay_s)) if isinstance(config, AdviseController) else controller


def _left(order: AnyOrder, move: Move, why_not: str) -> AnyOrder:
    """Return the note of a window without its move, which is left for a reason; another order as it is."""
    if not isinstance(order, NoteWindow):
        return order
    return replace(order, action="", reason=f"{order.reason}; {move} is left, {why_not}")
