"""Changes of composition: who asks for them, and what they change in the books (sec. 6)."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from vertumnus.domain.cluster import CpGroup, Lattice
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import AnyFact, OperatorActed
from vertumnus.domain.move import Move
from vertumnus.domain.orders import Answer, AnyOrder, CloseTransition, SetTimer
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.units import Nanoseconds, to_ns
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.prefix.reconcile import Reconciler
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.config import (
    ControllerConfig,
    ManualController,
    OffController,
    Thresholds,
)
from vertumnus.policy.reconfig.controller import Controller, PoolView
from vertumnus.policy.reconfig.mode import Mode, ModeSwitch, configured_mode
from vertumnus.policy.reconfig.moves import check_move
from vertumnus.policy.reconfig.transition import Transition, Transitions
from vertumnus.policy.statistics import PrefixStatistics

WINDOW = "window"
"""Timer of the end of an observation window (sec. 6.1)."""


class Books(Struct, frozen=True):
    """What a change of composition changes."""

    pool: PoolState
    ledger: Ledger
    index: PrefixIndex
    statistics: PrefixStatistics
    reconciler: Reconciler


class Composer:
    """Begins moves, follows their transitions, and puts the new workers into the books."""

    def __init__(
        self,
        books: Books,
        lattice: Lattice,
        switch_timeout_ns: Nanoseconds,
        controller: Controller | None,
        mode: ModeSwitch,
    ) -> None:
        """Follow *controller*, if there is one and *mode* lets it."""
        self._books = books
        self._lattice = lattice
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
        if self.mode.at(fact.at) == Mode.OFF:
            raise ConfigError("controller=off takes no moves; use controller=manual")
        return [Answer(fact.action_id, True, ""), *self._comply(fact)]

    def window_ended(self, due_ns: Nanoseconds) -> list[AnyOrder]:
        """Close the window that is due and do what the controller makes of it."""
        assert self.controller is not None  # its timer is only set with one
        view = PoolView(self._books.pool.in_routing, self.busy, self._drain, self._reconcile_blocks)
        note, move = self.controller.close_window(due_ns, view)
        timer = SetTimer(WINDOW, due_ns + self.controller.window_ns)
        if move is None:
            return [note, timer]
        why_not = self.mode.why_not(due_ns)
        if why_not is not None:
            return [replace(note, action="", reason=f"{note.reason}; {move} is left, {why_not}"), timer]
        return [note, timer, *self._begin(move)]

    def handle(self, fact: AnyFact) -> list[AnyOrder]:
        """Take a fact that may move a transition on; the books are changed when one closes."""
        orders = self._transitions.handle(fact)
        for order in orders:
            if isinstance(order, CloseTransition):
                self._close(order)
        return orders

    def _comply(self, fact: OperatorActed) -> list[AnyOrder]:
        """Do what an operator wants. Raises ConfigError, and changes nothing, when it is not legal."""
        if fact.action == "auto" or fact.action == "manual":
            self.mode.turn(fact.action)
            return []
        assert fact.action in ("split", "merge")
        self._refuse_held(fact)
        serving = self._books.pool.serving
        move = check_move(serving, self._lattice, fact.action, fact.workers, self.busy)
        self.mode.note_move_by_hand(fact.at)
        return self._begin(move)

    def _begin(self, move: Move) -> list[AnyOrder]:
        orders = self._transitions.begin(move)
        for group in move.sources:  # no candidate from this moment on (sec. 6.2)
            self._books.pool.workers[group].draining = f"draining for a {move.kind}"
        if self.controller is not None:
            self.controller.note_transition()
        return orders

    def _close(self, order: CloseTransition) -> None:
        books = self._books
        if self.controller is not None:
            self.controller.note_transition()
        if order.outcome == "reopened":
            for group in order.sources:
                books.pool.workers[group].draining = None
            return
        books.reconciler.recompose(order)
        books.pool.replace(order.sources, order.targets, order.reason or None)
        books.index.recompose(books.pool.groups)
        books.ledger.recompose(books.pool.groups)
        if order.outcome == "failed":
            lost = sum(group.mask for group in order.targets)
            books.statistics.note_unheld(books.index.forget(lost))

    def _refuse_held(self, fact: OperatorActed) -> None:
        for worker in fact.workers:
            state = self._books.pool.workers.get(worker)
            if state is not None and state.held_by is not None:
                raise ConfigError(
                    f"{fact.action} {worker}: it is drained by {state.held_by}; reopen it first"
                )

    def _drain(self, worker: CpGroup) -> Nanoseconds:
        return self._books.ledger.running(worker)

    def _reconcile_blocks(self, move: Move) -> float:
        """Return the missing blocks of retained prefixes after *move*, weighted by recent access (sec. 6.2).

        After a merge nothing is missing that must move: any ownership serves. After a split each half
        lacks what the other one holds.
        """
        if move.kind == "merge":
            return 0.0
        return sum(self._weight(half, move.sources) for half in move.targets)

    def _weight(self, half: CpGroup, sources: Iterable[CpGroup]) -> float:
        (source,) = sources
        demand, degree = self._books.statistics.demand, source.degree
        held_elsewhere = self._books.index.keys_on(source.mask & ~half.mask)
        return sum(demand.access(key, degree) for key in held_elsewhere)


def compose(
    books: Books,
    lattice: Lattice,
    prefill_time: PrefillTimeModel,
    config: ControllerConfig,
    kappa: Mapping[int, float],
    token_scale: float,
) -> Composer:
    """Return the composer that *config* asks for; *token_scale* scales its bound of long requests.

    Raises ConfigError when kappa is missing for a degree that the controller may have to judge.
    """
    hold_s = config.hold_s if isinstance(config, Thresholds) else 0.0
    mode = ModeSwitch(configured_mode(config), to_ns(hold_s))
    if isinstance(config, OffController):
        return Composer(books, lattice, 0, None, mode)
    timeout_ns = to_ns(config.switch_timeout_s)
    if isinstance(config, ManualController):
        return Composer(books, lattice, timeout_ns, None, mode)
    long_tokens = max(1, round(config.long_tokens * token_scale))
    controller = Controller(config, Capacity(kappa), prefill_time, lattice, long_tokens)
    return Composer(books, lattice, timeout_ns, controller, mode)
