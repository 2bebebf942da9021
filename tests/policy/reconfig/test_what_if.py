"""The what-if controller on hand-made forecasts: what it asks, when it moves, what trouble does."""

import pytest

from tests.support.builders import a_control_plane
from tests.support.forecasts import an_outcome
from tests.support.reconfig import LATTICE, a_composition
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import ForecastFailed, ForecastFinished, OperatorActed, TimerFired
from vertumnus.domain.move import Move
from vertumnus.domain.orders import AnyOrder, Drain, Forecast, NoteWindow
from vertumnus.domain.units import SECOND
from vertumnus.domain.wording import counted
from vertumnus.policy.composer import WINDOW
from vertumnus.policy.reconfig.config import WhatIfController
from vertumnus.policy.reconfig.verdict import PoolView, Verdict
from vertumnus.policy.reconfig.what_if import WhatIf

SPLIT = Move("split", (CpGroup(0, 2),), CpGroup(0, 2).halves)
MERGE = Move("merge", (CpGroup(2, 1), CpGroup(3, 1)), (CpGroup(2, 2),))
HERE = a_composition("0x2", "2x1", "3x1")


def a_view(composition=HERE, busy=(), drain=None, blocks=None) -> PoolView:
    """A pool at rest."""
    drains, weights = drain or {}, blocks or {}
    return PoolView(
        composition, busy, lambda w: drains.get(w, 0), lambda moves: [weights.get(m, 0.0) for m in moves]
    )


class Rig:
    """A controller whose windows of 20 s end one after the other."""

    def __init__(self, **config) -> None:
        self.controller = WhatIf(WhatIfController(**config), LATTICE, 32_768)
        self.now = 0

    def close(self, view: PoolView | None = None, requests: int = 400) -> Verdict:
        for _ in range(requests):
            self.controller.note_routed(1, 100, 0, 1_000)
        self.now += 20 * SECOND
        return self.controller.close_window(self.now, view or a_view())

    def answer(
        self, *means: float | None, view: PoolView | None = None, forecast_id=None, **served
    ) -> Verdict:
        """Answer the latest forecast: mean TTFT of staying, of the split, of the merge [s]."""
        number = self.controller._last_id if forecast_id is None else forecast_id
        moves = (None, SPLIT, MERGE)
        outcomes = tuple(an_outcome(move, mean, **served) for move, mean in zip(moves, means, strict=False))
        return self.controller.answered(ForecastFinished(self.now, number, outcomes), view or a_view())

    def window(self, *means: float | None, view: PoolView | None = None) -> Verdict:
        self.close(view)
        return self.answer(*means, view=view)


def the_note(verdict: Verdict) -> NoteWindow:
    (note,) = verdict.orders
    assert isinstance(note, NoteWindow)
    return note


def test_a_window_asks_for_staying_a_split_and_a_merge() -> None:
    """The order names the best legal move of each kind and nothing is noted before the answer."""
    (asked,) = Rig().close().orders
    assert asked == Forecast(1, (SPLIT, MERGE), 20 * SECOND, 3, 1.25)


def test_the_last_worker_for_the_longest_prompt_is_no_candidate() -> None:
    """Where that needs degree 2, the only CP2 is not asked about; of two either may be."""
    alone = a_view()._replace(least_degree=2)
    assert Rig().close(alone).orders[0].moves == (MERGE,)
    assert Rig().close(alone._replace(composition=a_composition("0x2", "2x2"))).orders[0].moves[0] == SPLIT


def test_candidates_are_those_with_the_least_drain_then_the_least_to_reconcile() -> None:
    """Of two splits the one that drains sooner is asked about, of equal ones the one that misses less."""
    pairs = a_composition("0x2", "2x2")
    left, right = (Move("split", (CpGroup(n, 2),), CpGroup(n, 2).halves) for n in (0, 2))
    for drain, blocks, first in [({CpGroup(0, 2): 5}, {}, right), ({}, {left: 2.0, right: 1.0}, right)]:
        view = a_view(pairs, drain=drain, blocks=blocks)
        assert Rig().close(view).orders[0].moves[0] == first
        assert set(Rig(candidates=2).close(view).orders[0].moves[:2]) == {left, right}


@pytest.mark.parametrize(
    ("means", "move"),
    [
        ((1.0, 0.89, 1.2), SPLIT),
        ((1.0, 1.1, 0.89), MERGE),
        ((1.0, 0.88, 0.87), MERGE),
        ((1.0, 0.91, 0.91), None),  # 9 % is not more than min_gain
        ((1.0, 0.901, 1.0), None),
        ((1.0, None, None), None),
        ((None, None, None), None),
    ],
)
def test_the_better_move_is_made_when_it_pays(means, move) -> None:
    """The move with the lowest mean TTFT, if that is more than 10 % below staying's; the note says all."""
    verdict = Rig().window(*means)
    assert verdict.move == move
    note = the_note(verdict)
    assert note.action == ("" if move is None else str(move))
    assert note.forecast_id == 1 and note.capacity_ns is None
    assert note.reason.startswith("stay: ") and "merge 2x1 + 3x1 -> 2x2: " in note.reason


def test_small_gains_add_up_and_losses_take_away() -> None:
    """Merges gain 4, 4, -5, 4 and 4 %: 4, 8, 3, 7, 11; splits, which only cost, stay at 0."""
    rig = Rig()
    told = [rig.window(1.0, 1.3, mean) for mean in (0.96, 0.96, 1.05, 0.96, 0.96)]
    assert [verdict.move for verdict in told] == [None] * 4 + [MERGE]
    assert [the_note(verdict).signal for verdict in told] == ["merge", "merge", None, "merge", "merge"]
    assert [the_note(verdict).persistence for verdict in told] == [1, 2, 0, 1, 2]


def test_turning_back_takes_twice_as_much() -> None:
    """After a split a merge needs more than 20 %; the next split, the way of the last move, 10 %."""
    rig = Rig()
    assert rig.window(1.0, 0.85, 1.2).move == SPLIT
    rig.controller.note_transition(SPLIT)
    assert rig.window(1.0, 0.85, 1.2).move == SPLIT
    rig.controller.note_transition(SPLIT)
    assert [rig.window(1.0, 1.2, mean).move for mean in (0.85, 0.96, 0.98)] == [None, None, MERGE]


def test_every_further_turn_takes_twice_as_much_again() -> None:
    """A split for 10 %, a merge for 20 %, a split again only for 40 %, a merge again for 80 %."""
    rig = Rig()
    for needed, kind in [(0.1, SPLIT), (0.2, MERGE), (0.4, SPLIT), (0.8, MERGE)]:
        for share, made in [(needed - 0.01, None), (needed + 0.01, kind)]:
            means = (1.0 - share, 1.2) if kind == SPLIT else (1.2, 1.0 - share)
            assert rig.window(1.0, *means).move == made
            rig.controller.note_transition(made)  # nothing adds up over these windows


def test_a_move_that_is_not_begun_is_no_turn() -> None:
    """In MANUAL eight windows speak for a split and a merge by turns; then, in AUTO, 15 % do for a merge."""
    control = a_control_plane(controller=WhatIfController(cooldown_windows=0))

    def window(number: int, *means: float) -> list[AnyOrder]:
        at = number * 20 * SECOND
        (asked,) = [each for each in control.handle(TimerFired(at, WINDOW, at)) if isinstance(each, Forecast)]
        tried = [an_outcome(move, mean) for move, mean in zip((None, *asked.moves), means, strict=True)]
        return control.handle(ForecastFinished(at, asked.forecast_id, tuple(tried)))

    control.handle(OperatorActed(0, 1, "ann", "manual"))
    for number in range(1, 9):
        (note,) = window(number, 1.0, *((0.5, 1.5) if number % 2 else (1.5, 0.5)))
        assert isinstance(note, NoteWindow) and note.reason.endswith("is left, the mode is manual")
    control.handle(OperatorActed(170 * SECOND, 2, "ann", "auto"))
    assert not [each for each in window(9, 1.0, 0.9, 1.5) if isinstance(each, Drain)]
    assert [each.worker for each in window(10, 1.0, 1.1, 0.85) if isinstance(each, Drain)] == [*MERGE.sources]


def test_a_new_demand_may_want_the_opposite_at_once() -> None:
    """A split for 400 requests a window, then 100: the merge needs 10 %, not twice that."""
    rig = Rig()
    assert rig.window(1.0, 0.85, 1.2).move == SPLIT
    rig.controller.note_transition(SPLIT)
    rig.close(requests=100)
    assert rig.answer(1.0, 1.2, 0.85).move == MERGE


def test_what_spoke_for_a_move_under_another_demand_does_not_count() -> None:
    """Twice 6 % for a split would do; with demand changed in between, it takes two of the new one."""
    rig = Rig()
    rig.window(1.0, 0.94, 1.2)
    rig.close(requests=100)
    told = rig.answer(1.0, 0.94, 1.2)
    assert told.move is None and the_note(told).persistence == 1
    rig.close(requests=100)
    assert rig.answer(1.0, 0.94, 1.2).move == SPLIT


def test_demand_that_alternates_moves_nothing() -> None:
    """Windows that speak for a split and for a merge by turns, by as much: neither is ever made."""
    rig = Rig()
    told = [rig.window(1.0, *means) for means in [(0.91, 1.09), (1.09, 0.91)] * 10]
    assert {verdict.move for verdict in told} == {None}


def test_a_move_must_pay_so_many_windows_in_a_row() -> None:
    """With persistence 2 a window that does not pay, or pays the other way, starts the count anew."""
    rig = Rig(persistence=2)
    pays, turned, idle = (1.0, 0.8, 1.1), (1.0, 1.1, 0.8), (1.0, 1.0, 1.0)
    told = [rig.window(*means) for means in (pays, idle, pays, turned, pays, pays)]
    assert [verdict.move for verdict in told] == [None] * 5 + [SPLIT]
    assert [the_note(verdict).persistence for verdict in told] == [1, 0, 1, 1, 1, 2]
    assert [the_note(verdict).signal for verdict in told] == [
        "split", None, "split", "merge", "split", "split",
    ]  # fmt: skip


def test_a_transition_forgets_and_cools_down() -> None:
    """After a change by whomever, so many windows ask for nothing, and what persisted is forgotten."""
    rig = Rig(persistence=2, cooldown_windows=2)
    rig.window(1.0, 0.8)
    rig.controller.note_transition()
    for left in (1, 0):
        assert the_note(rig.close()).reason == f"cooling down, {counted(left, 'more window')}"
    assert rig.window(1.0, 0.8).move is None
    assert rig.window(1.0, 0.8).move == SPLIT


def test_a_failed_forecast_moves_nothing() -> None:
    """The note says why, and what persisted is forgotten."""
    rig = Rig(persistence=2)
    rig.window(1.0, 0.8)
    rig.close()
    verdict = rig.controller.answered(ForecastFailed(rig.now, 2, "killed"), a_view())
    assert verdict.move is None and the_note(verdict).reason == "no forecast: killed"
    assert rig.window(1.0, 0.8).move is None


def test_one_forecast_at_a_time() -> None:
    """While the answer is under way the next window asks for nothing; then it still counts."""
    rig = Rig()
    rig.close()
    assert the_note(rig.close()).reason == "the forecast of window 0 is still being made"
    verdict = rig.answer(1.0, 0.8)
    assert verdict.move == SPLIT and the_note(verdict).index == 0


def test_an_answer_about_another_composition_is_dropped() -> None:
    """Somebody moved meanwhile, or is moving: the forecast says nothing about what is there now."""
    for view in (a_view(a_composition("0x1", "1x1", "2x1", "3x1")), a_view(busy=(CpGroup(0, 2),))):
        rig = Rig()
        rig.close()
        verdict = rig.answer(1.0, 0.5, view=view)
        assert verdict.move is None
        assert the_note(verdict).reason == "the composition changed while the forecast was made"


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    """A second answer to the same forecast, or one to no forecast."""
    rig = Rig()
    rig.window(1.0, 0.8)
    assert rig.answer(1.0, 0.5) == Verdict()
    assert rig.answer(1.0, 0.5, forecast_id=99) == Verdict()


def test_a_move_that_leaves_requests_unserved_does_not_pay() -> None:
    """A lower mean over fewer requests is no gain."""
    rig = Rig()
    rig.close()
    outcomes = (an_outcome(None, 1.0, served=10), an_outcome(SPLIT, 0.5, served=9))
    verdict = rig.controller.answered(ForecastFinished(rig.now, 1, outcomes), a_view())
    assert verdict.move is None and "0.500 s, 1 unserved" in the_note(verdict).reason


def test_nothing_to_ask() -> None:
    """A transition under way, or a composition that cannot move, is noted at once."""
    assert the_note(Rig().close(a_view(busy=(CpGroup(0, 2),)))).reason == "a transition is under way"
    assert the_note(Rig().close(a_view(a_composition()))).reason == "no move is legal"


def test_the_past_reaches_as_far_as_it_takes_for_enough_requests() -> None:
    """A need of 300, at most 60 s, and demand changes after 310 and after 130 requests: worked by hand."""
    rig = Rig(replay_requests=300, replay_s=60.0)
    spans, repeats = [], []
    for requests in (310, 140, 120, 110, 130, 290):
        (asked,) = rig.close(requests=requests).orders
        spans.append(asked.span_ns // SECOND)
        repeats.append(asked.repeats)
        rig.answer(1.0, 1.0)
    assert spans == [20, 20, 40, 60, 60, 20]
    assert repeats == [3, 3, 2, 1, 1, 3], "as far as horizon_s"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"window_s": 0.0}, "window_s must be at least 0.01, got 0.0"),
        ({"window_s": 30.0, "replay_s": 20.0}, "replay_s must be at least 30 and at most 300 s, got 20.0"),
        ({"replay_s": 301.0}, "replay_s must be at least 20 and at most 300 s"),
        ({"replay_s": float("nan")}, "replay_s must be at least 20"),
        ({"horizon_s": -1.0}, r"horizon_s must be in \[0, 3600\], got -1.0"),
        ({"load": 0.0}, r"load must be in \[0.1, 10\], got 0.0"),
        ({"replay_requests": 0}, "replay_requests must be at least 1, got 0"),
        ({"min_gain": -0.1}, r"min_gain must be in \[0, 1\), got -0.1"),
        ({"min_gain": 1.0}, "min_gain must be"),
        ({"turn_factor": 0.5}, r"turn_factor must be in \[1, 100\], got 0.5"),
        ({"persistence": 0}, "persistence must be at least 1 window, got 0"),
        ({"cooldown_windows": -1}, "cooldown_windows must be at least 0, got -1"),
        ({"candidates": 0}, "candidates must be at least 1, got 0"),
        ({"long_tokens": 0}, "long_tokens must be at least 1, got 0"),
        ({"switch_timeout_s": 0.0}, "switch_timeout_s must be above 0"),
    ],
)
def test_bad_settings(wrong, says) -> None:
    """Each is refused with what was found and what is allowed."""
    with pytest.raises(ValueError, match=says):
        WhatIfController(**wrong)
