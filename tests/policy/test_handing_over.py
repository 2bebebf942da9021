"""An operator takes over from the controller and hands back: it goes on from what it finds."""

from collections.abc import Sequence

import pytest

from tests.support.builders import a_cluster, a_control_plane, a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import (
    EpochAdopted,
    OperatorActed,
    RequestArrived,
    TimerFired,
    WorkerDrained,
    WorkerFormed,
)
from vertumnus.domain.orders import AdoptEpoch, Answer, AnyOrder, Drain, NoteWindow
from vertumnus.domain.units import SECOND
from vertumnus.policy.reconfig.config import ThresholdsController

WHOLE, (LEFT, RIGHT) = CpGroup(0, 4), CpGroup(0, 4).halves
OVERLOADED = {1: 0.001, 2: 0.001, 4: 0.001}
"""kappa with which any demand asks for a split."""


class Desk:
    """Four ranks under a controller with windows of 1 s that acts at once, and an operator."""

    def __init__(self, hold_s: float = 0.0, longest_prompt: int | None = None) -> None:
        controller = ThresholdsController(window_s=1.0, persistence=1, cooldown_windows=0, hold_s=hold_s)
        cluster = a_cluster({4: 1}, degrees=(1, 2, 4))
        self.control = a_control_plane(
            cluster, controller=controller, kappa=OVERLOADED, longest_prompt=longest_prompt
        )
        self.now = 0
        self._windows = self._requests = self._wishes = 0

    def wish(self, action, *workers: CpGroup) -> list[AnyOrder]:
        self._wishes += 1
        answer, *orders = self.control.handle(OperatorActed(self.now, self._wishes, "ann", action, workers))
        assert answer == Answer(self._wishes, True, "")
        return orders

    def end_window(self) -> tuple[NoteWindow, list[AnyOrder]]:
        """Let a request arrive and the window end; return the note and what is begun."""
        self._requests += 1
        self.control.handle(RequestArrived(self.now, a_request(self._requests, arrival_ns=self.now)))
        self._windows += 1
        self.now = self._windows * SECOND
        note, _timer, *orders = self.control.handle(TimerFired(self.now, "window", self.now))
        assert isinstance(note, NoteWindow)
        return note, orders

    def carry_out(self, orders: Sequence[AnyOrder]) -> None:
        """Let the drained workers adopt what they are to become."""
        for drain in orders:
            assert isinstance(drain, Drain)
            orders = self.control.handle(WorkerDrained(self.now, drain.worker))
        adopt = orders[0]
        assert isinstance(adopt, AdoptEpoch)
        for worker in adopt.workers:
            for rank in worker.ranks:
                self.control.handle(EpochAdopted(self.now, rank, adopt.epoch, worker))
            self.control.handle(WorkerFormed(self.now, worker, adopt.epoch, ()))


def test_auto_starts_from_what_it_observes() -> None:
    """A split by hand under MANUAL, then AUTO: windows were counted, and the next one splits a half."""
    desk = Desk()
    desk.wish("manual")
    desk.carry_out(desk.wish("split", WHOLE))
    note, orders = desk.end_window()
    assert (note.signal, note.action, note.requests, orders) == ("split", "", 1, [])
    assert note.reason.endswith("split 0x2 -> 0x1 + 1x1 is left, the mode is manual")
    desk.wish("auto")
    note, orders = desk.end_window()
    assert note.action == "split 0x2 -> 0x1 + 1x1" and orders == [Drain(LEFT)]


def test_the_controller_leaves_a_worker_for_the_longest_prompt() -> None:
    """1,600 tokens need a degree of 2: overloaded or not, one half of the pool is not split any further."""
    desk = Desk(longest_prompt=1_600)
    desk.carry_out(desk.wish("split", WHOLE))
    _, orders = desk.end_window()
    assert orders == [Drain(LEFT)]
    note, orders = desk.end_window()
    assert (note.signal, orders) == ("split", [])


def test_a_split_by_hand_holds_the_controller() -> None:
    """Without a word about modes the controller leaves the pool alone until the hold is over."""
    desk = Desk(hold_s=2.5)
    desk.carry_out(desk.wish("split", WHOLE))
    assert desk.control.mode(desk.now) == "hold"
    for _ in range(2):
        note, orders = desk.end_window()
        assert orders == [] and "on hold until 2.5 s" in note.reason
    _, orders = desk.end_window()
    assert orders == [Drain(LEFT)] and desk.control.mode(desk.now) == "auto"


def test_auto_ends_a_hold() -> None:
    """An operator need not wait for a hold to end."""
    desk = Desk(hold_s=60.0)
    desk.carry_out(desk.wish("split", WHOLE))
    desk.wish("auto")
    assert desk.end_window()[1] == [Drain(LEFT)]


def test_a_refused_move_holds_nothing() -> None:
    """Only a move that is begun counts as one."""
    desk = Desk(hold_s=60.0)
    (answer,) = desk.control.handle(OperatorActed(0, 1, "ann", "split", (LEFT,)))
    assert isinstance(answer, Answer) and not answer.accepted
    assert desk.control.mode(0) == "auto"


@pytest.mark.parametrize("action", ["auto", "manual"])
def test_a_mode_without_a_controller_is_refused(action) -> None:
    """controller=manual has nothing to hand over to; nothing changes."""
    control = a_control_plane()
    (answer,) = control.handle(OperatorActed(0, 1, "ann", action))
    assert answer == Answer(1, False, f"{action}: controller=manual has no controller that moves workers")
    assert control.mode(0) == "manual"


def test_off_by_hand_lets_nobody_move() -> None:
    """The controller's moves are left, operators' are refused, until manual or auto ends it."""
    desk = Desk()
    desk.wish("off")
    note, orders = desk.end_window()
    assert note.reason.endswith("is left, the mode is off") and orders == []
    (answer,) = desk.control.handle(OperatorActed(desk.now, 99, "bob", "split", (WHOLE,)))
    assert answer == Answer(99, False, "moves were turned off; manual or auto turns them on again")
    desk.wish("auto")
    assert desk.end_window()[1] == [Drain(WHOLE)]


def test_off_by_hand_without_a_controller_ends_with_manual() -> None:
    """Under controller=manual, too, a composition can be frozen and thawed; auto stays refused."""
    control = a_control_plane()
    for number, (action, accepted, mode) in enumerate(
        [
            ("off", True, "off"),
            ("auto", False, "off"),
            ("manual", True, "manual"),
            ("manual", False, "manual"),
        ]
    ):
        (answer,) = control.handle(OperatorActed(0, number, "ann", action))
        assert answer.accepted == accepted and control.mode(0) == mode
