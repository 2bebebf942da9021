"""From windows to signals: thresholds, persistence, capacity before mix, cooldown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.reconfig import a_composition, a_report
from vertumnus.domain.cluster import Composition
from vertumnus.domain.errors import ConfigError
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.config import ThresholdsController
from vertumnus.policy.reconfig.trigger import Signal, Trigger
from vertumnus.policy.reconfig.window import WindowReport

POOL = a_composition("0x2", "2x1", "3x1")
"""With kappa 0.5 for either degree: 1.5 s of work a second, 30 s in a window."""
BUSY, CALM, IDLE = 31.6, 25.0, 19.4
"""Above 1.05 x 30 = 31.5, within, and below 0.65 x 30 = 19.5 [s of work]."""


def a_trigger(**changes: float) -> Trigger:
    """A trigger over kappa 0.5."""
    return Trigger(ThresholdsController(**changes), Capacity({1: 0.5, 2: 0.5}))


def feed(trigger: Trigger, *reports: WindowReport) -> list[Signal]:
    """Show the windows one after the other on POOL."""
    return [trigger.observe(report, POOL) for report in reports]


def directions(signals: list[Signal]) -> list[str | None]:
    """What each signal wants done."""
    return [signal.direction for signal in signals]


def test_a_busy_window_by_hand() -> None:
    """31.6 s against 30 s of capacity: 105.3 %, a split seen, one window of two."""
    (signal,) = feed(a_trigger(), a_report(BUSY, long=60))
    assert signal == Signal(
        direction=None,
        seen="split",
        cause="capacity",
        persistence=1,
        reason="demand 31.60 s is above 1.05 x 30.00 s of capacity; window 1 of 2",
        demand_s=31.6,
        capacity_s=30.0,
        utilisation=31.6 / 30.0,
        long_fraction=0.06,
        stable_long_fraction=None,
    )


@pytest.mark.parametrize(("demand", "direction"), [(BUSY, "split"), (IDLE, "merge"), (CALM, None)])
def test_a_condition_acts_when_it_has_persisted(demand: float, direction: str | None) -> None:
    """The second window in a row gives the direction, and it stays while the condition does."""
    signals = feed(a_trigger(), *[a_report(demand)] * 3)
    assert directions(signals) == [None, direction, direction]


@pytest.mark.parametrize("demand", [31.5, 19.5])
def test_the_thresholds_themselves_are_within(demand: float) -> None:
    """Exactly upper or lower times the capacity asks for nothing."""
    assert [signal.seen for signal in feed(a_trigger(), a_report(demand))] == [None]


def test_an_interruption_starts_the_count_anew() -> None:
    """Busy, calm, busy is no persistence of 2; nor is busy, idle, busy."""
    for between in (CALM, IDLE):
        signals = feed(a_trigger(), a_report(BUSY), a_report(between), a_report(BUSY))
        assert directions(signals) == [None, None, None]
        assert signals[-1].persistence == 1


def test_persistence_of_one_acts_at_once() -> None:
    """persistence=1 needs no second window."""
    assert directions(feed(a_trigger(persistence=1), a_report(BUSY))) == ["split"]


@pytest.mark.parametrize(("long", "direction"), [(160, "merge"), (20, "split"), (140, None), (60, None)])
def test_the_mix_decides_when_demand_does_not(long: int, direction: str | None) -> None:
    """From 10 % long: 16 % asks for a merge, 2 % for a split, 14 and 6 % (within 5 points) for nothing."""
    trigger = a_trigger()
    assert directions(feed(trigger, *[a_report(CALM, long=100)] * 3)) == [None] * 3
    signals = feed(trigger, *[a_report(CALM, long=long)] * 2)
    assert directions(signals) == [None, direction]
    assert signals[0].stable_long_fraction == 0.1
    assert signals[0].cause == ("mix" if direction else None)


def test_a_few_requests_may_differ_by_chance() -> None:
    """From 30 of 100 to 10 of 20: 20 points are 1.7 standard errors, nothing; to 100 of 200 they are 3.3."""
    for long, requests, seen in ((10, 20, None), (100, 200, "merge")):
        trigger = a_trigger()
        feed(trigger, *[a_report(CALM, long=15, requests=50)] * 2)
        assert [s.seen for s in feed(trigger, a_report(CALM, long, requests))] == [seen]


def test_capacity_wins_a_conflict() -> None:
    """Overload with more long requests splits; idleness with fewer merges; the reason tells the loser."""
    for demand, long, direction, loser in ((BUSY, 300, "split", "30.0%"), (IDLE, 10, "merge", "1.0%")):
        trigger = a_trigger()
        feed(trigger, *[a_report(CALM, long=100)] * 2)
        signals = feed(trigger, *[a_report(demand, long=long)] * 2)
        assert directions(signals) == [None, direction]
        assert {signal.cause for signal in signals} == {"capacity"}
        assert "capacity goes before the mix" in signals[1].reason and loser in signals[1].reason


def test_a_conflict_stops_the_mix_at_once() -> None:
    """The mix has persisted for one window when overload shows: no merge, neither then nor next."""
    trigger = a_trigger()
    feed(trigger, *[a_report(CALM, long=100)] * 2)
    signals = feed(trigger, a_report(CALM, 300), a_report(BUSY, 300), a_report(CALM, 300))
    assert directions(signals) == [None, None, None]
    assert [signal.seen for signal in signals] == ["merge", "split", "merge"]


def test_two_rules_that_agree_do_not_add_up() -> None:
    """One window by capacity, then one by the mix: each rule has shown for one window only."""
    trigger = a_trigger()
    feed(trigger, *[a_report(CALM, long=100)] * 2)
    signals = feed(trigger, a_report(IDLE, long=100), a_report(CALM, long=300))
    assert [(s.seen, s.cause, s.direction) for s in signals] == [
        ("merge", "capacity", None),
        ("merge", "mix", None),
    ]


def test_a_rule_persists_beside_the_other() -> None:
    """The mix shows in two windows, in the first of which demand asked for the same: it has persisted."""
    trigger = a_trigger()
    feed(trigger, *[a_report(CALM, long=100)] * 2)
    signals = feed(trigger, a_report(IDLE, long=300), a_report(CALM, long=300))
    assert [(s.cause, s.direction) for s in signals] == [("capacity", None), ("mix", "merge")]


def test_a_cooldown_follows_a_transition() -> None:
    """Two busy windows after a transition count for nothing; the two after them act."""
    trigger = a_trigger()
    feed(trigger, a_report(BUSY), a_report(BUSY))
    trigger.note_transition()
    signals = feed(trigger, *[a_report(BUSY)] * 4)
    assert directions(signals) == [None, None, None, "split"]
    assert [signal.persistence for signal in signals] == [0, 0, 1, 2]
    assert signals[0].reason.endswith("cooling down, 1 more window")


def test_the_new_mix_is_stable_after_a_transition() -> None:
    """After a merge for 30 % long, 30 % asks for nothing more, and going back to 10 % for a split."""
    trigger = a_trigger(cooldown_windows=0)
    feed(trigger, *[a_report(CALM, long=100)] * 2)
    assert directions(feed(trigger, *[a_report(CALM, long=300)] * 2))[-1] == "merge"
    trigger.note_transition()
    assert directions(feed(trigger, *[a_report(CALM, long=300)] * 3)) == [None] * 3
    assert directions(feed(trigger, *[a_report(CALM, long=100)] * 2)) == [None, "split"]


def test_a_slow_drift_adds_up() -> None:
    """One point a window stays below 5 points each time and still is noticed: at 11 windows from level."""
    trigger = a_trigger()
    signals = feed(trigger, *[a_report(CALM, long=100 + 10 * step) for step in range(14)])
    assert "merge" in directions(signals)


def test_windows_without_arrivals_leave_the_mix_alone() -> None:
    """An empty window has no long fraction, is idle, and changes no level."""
    trigger = a_trigger()
    feed(trigger, *[a_report(CALM, long=100)] * 2)
    signals = feed(trigger, a_report(0.0, requests=0), a_report(CALM, long=110))
    assert signals[0].long_fraction is None and signals[0].seen == "merge"
    assert signals[1].stable_long_fraction == 0.1 and signals[1].seen is None


def test_nobody_in_service() -> None:
    """Without workers there is no utilisation and nothing to move."""
    signal = a_trigger().observe(a_report(BUSY), Composition(()))
    assert (signal.utilisation, signal.seen) == (None, None)


def test_the_observed_composition_counts() -> None:
    """After a split by hand the same demand is measured against the new capacity: 4 x 0.5 x 20 = 40 s."""
    trigger = a_trigger()
    feed(trigger, a_report(CALM))
    signal = trigger.observe(a_report(25.9), a_composition("0x1", "1x1", "2x1", "3x1"))
    assert (signal.capacity_s, signal.seen) == (40.0, "merge")


def test_a_missing_kappa_changes_nothing() -> None:
    """The error names the degree, and the next window is the first one all the same."""
    trigger = a_trigger()
    with pytest.raises(ConfigError, match=r"profile\.capacity\.4: missing"):
        trigger.observe(a_report(BUSY), a_composition("0x4"))
    assert directions(feed(trigger, a_report(BUSY), a_report(BUSY))) == [None, "split"]


levels = st.sampled_from([(BUSY, 100), (CALM, 100), (IDLE, 100), (CALM, 300), (CALM, 10), (BUSY, 300)])


@given(st.integers(2, 4), st.data())
def test_alternation_shorter_than_persistence_does_nothing(persistence: int, data: st.DataObject) -> None:
    """Whatever the levels of demand and mix, runs shorter than `persistence` never give a direction.

    Between two runs lies a calm window, so that two runs of the same condition do not join.
    """
    trigger = a_trigger(persistence=persistence)
    feed(trigger, *[a_report(CALM, long=100)] * 50)  # a settled mix, which a few windows do not shift
    for _ in range(data.draw(st.integers(1, 8))):
        demand, long = data.draw(levels)
        length = data.draw(st.integers(1, persistence - 1))
        signals = feed(trigger, *[a_report(demand, long)] * length, a_report(CALM, long=100))
        assert directions(signals) == [None] * (length + 1)


@given(st.integers(2, 4), st.lists(st.integers(1, 3), min_size=2, max_size=12))
def test_demand_across_both_thresholds_does_nothing(persistence: int, runs: list[int]) -> None:
    """Busy and idle runs in turn, each shorter than `persistence`, without a calm window between."""
    trigger = a_trigger(persistence=persistence)
    for place, run in enumerate(runs):
        demand = BUSY if place % 2 else IDLE
        assert set(directions(feed(trigger, *[a_report(demand)] * min(run, persistence - 1)))) == {None}


windows = st.lists(
    st.tuples(st.floats(0.0, 60.0), st.integers(0, 1_000), st.booleans()), min_size=1, max_size=30
)


@given(windows, st.integers(1, 4), st.integers(0, 3))
def test_a_direction_needs_its_condition_in_a_row(history, persistence: int, cooldown: int) -> None:
    """Any direction is seen in each of the last `persistence` windows, none of them in a cooldown, and
    demand outside its band is never answered with the opposite.
    """
    trigger = a_trigger(persistence=persistence, cooldown_windows=cooldown)
    seen: list[str | None] = []
    since = 10**6
    for demand, long, moves_on_signal in history:
        (signal,) = feed(trigger, a_report(demand, long))
        since += 1
        seen.append(signal.seen)
        if signal.direction:
            assert seen[-persistence:] == [signal.direction] * persistence
            assert since >= cooldown + persistence
            assert signal.persistence >= persistence
        if demand > 31.5:
            assert signal.direction != "merge"
        if demand < 19.5:
            assert signal.direction != "split"
        if signal.direction and moves_on_signal:
            trigger.note_transition()
            since = 0
