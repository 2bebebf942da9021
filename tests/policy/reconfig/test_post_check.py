"""What a composition must carry after a move."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import a_prefill_time
from tests.support.reconfig import LATTICE, a_composition, a_model, a_report, inverse, tilings
from vertumnus.domain.cluster import Composition, Lattice
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.move import Move
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.config import ThresholdsController
from vertumnus.policy.reconfig.moves import apply, moves
from vertumnus.policy.reconfig.post_check import post_check
from vertumnus.policy.reconfig.sizes import SizeClass
from vertumnus.policy.reconfig.spread import spread

MODEL = a_model(d1=(0, 1e6), d2=(0, 0.8e6))
"""1 ms a token at degree 1, 0.8 ms at degree 2: two CP1 carry 1.6 times what one CP2 carries."""
CAPACITY = Capacity({1: 1.0, 2: 1.0})
EIGHT = Lattice(8, (1, 2, 4), 8)
THRESHOLDS = ThresholdsController()
TWO, ONE = a_composition("0x1", "1x1"), a_composition("0x2")
(MERGE,) = moves(TWO, LATTICE)
SPLIT = inverse(MERGE)


def admits(move: Move, cause, tokens: int, upper: float = 1.05) -> bool:
    """Whether *move* passes for one request of *tokens* in a window of 1 s."""
    before = TWO if move.kind == "merge" else ONE
    report = a_report(sizes=(SizeClass(1, tokens, 0),), span_ns=10**9)
    thresholds = ThresholdsController(upper=upper, lower=0.65)
    return post_check(report, before, cause, thresholds, CAPACITY, MODEL)(move)


@pytest.mark.parametrize("cause", ["capacity", "mix"])
def test_a_merge_by_hand(cause) -> None:
    """1250 tokens are 1.0 s at degree 2, just carried; 1251 are not. On two CP1 they were 62.5 % full."""
    assert admits(MERGE, cause, 1_250)
    assert not admits(MERGE, cause, 1_251)


def test_the_bound_is_upper_where_that_is_less() -> None:
    """With upper 0.9 a merge to 1.0 would ask for a split at once: only 0.9, 1125 tokens, is admitted."""
    assert admits(MERGE, "capacity", 1_125, upper=0.9)
    assert not admits(MERGE, "capacity", 1_126, upper=0.9)


def test_a_split_for_capacity_by_hand() -> None:
    """1400 tokens overfill the CP2 (1.12), not two CP1 (0.70); 4000 overfill both, but less (2.0 < 3.2)."""
    assert admits(SPLIT, "capacity", 1_400)
    assert admits(SPLIT, "capacity", 4_000)


def test_a_split_that_would_be_merged_back_is_refused() -> None:
    """1250 tokens: two CP1 would be 0.625 full, below lower, and the CP2 carries them."""
    for cause in ("capacity", "mix"):
        assert not admits(SPLIT, cause, 1_250)


def test_a_split_out_of_an_overload_may_leave_much_room() -> None:
    """620 tokens at 1.8 ms overfill the CP2 (1.12), so nobody merges back two CP1 that are 0.31 full."""
    model = a_model(d1=(0, 1e6), d2=(0, 1.8e6))
    report = a_report(sizes=(SizeClass(2, 310, 0),), span_ns=10**9)
    assert post_check(report, ONE, "capacity", THRESHOLDS, CAPACITY, model)(SPLIT)


def test_a_split_for_the_mix_has_to_carry() -> None:
    """1400 tokens fit two CP1 (0.70); 2100 do not (1.05), whatever the mix asks for."""
    assert admits(SPLIT, "mix", 1_400)
    assert not admits(SPLIT, "mix", 2_100)


def test_a_split_that_relieves_nothing_is_refused() -> None:
    """Where degree 2 is three times as fast as degree 1, overload is no reason to split."""
    model = a_model(d1=(0, 3e6), d2=(0, 1e6))
    report = a_report(sizes=(SizeClass(1, 1_400, 0),), span_ns=10**9)
    assert not post_check(report, ONE, "capacity", THRESHOLDS, CAPACITY, model)(SPLIT)


def test_nothing_arrived() -> None:
    """An empty window admits every merge and no split."""
    report = a_report(0.0, requests=0)
    assert post_check(report, TWO, "capacity", THRESHOLDS, CAPACITY, MODEL)(MERGE)
    assert not post_check(report, ONE, "mix", THRESHOLDS, CAPACITY, MODEL)(SPLIT)


def test_kappa_missing_for_the_degree_after() -> None:
    """A merge to a degree without kappa is an error that names it, not a refusal."""
    report = a_report(sizes=(SizeClass(1, 10, 0),))
    with pytest.raises(ConfigError, match=r"profile\.capacity\.2: missing"):
        post_check(report, TWO, "capacity", THRESHOLDS, Capacity({1: 1.0}), MODEL)(MERGE)


sizes = st.lists(
    st.builds(SizeClass, st.integers(1, 400), st.integers(1, 60_000), st.integers(0, 60_000)),
    min_size=1,
    max_size=5,
).map(tuple)
compositions = st.sampled_from([Composition(tiling) for tiling in tilings(LATTICE)])


@settings(max_examples=40)
@given(sizes, compositions, st.sampled_from(["capacity", "mix"]))
def test_what_is_admitted_is_carried(sizes, composition, cause) -> None:
    """After an admitted move the demand is carried, or the move was a split out of a worse overload; and
    no admitted move's inverse is admitted with the utilisation that would ask for it.
    """
    capacity, model = Capacity({1: 0.8, 2: 0.8, 4: 0.8}), a_prefill_time()
    report = a_report(sizes=sizes)
    test = post_check(report, composition, cause, THRESHOLDS, capacity, model)
    before = spread(sizes, report.span_ns, composition, capacity, model).utilisation
    for move in filter(test, moves(composition, LATTICE)):
        after = apply(composition, move)
        utilisation = spread(sizes, report.span_ns, after, capacity, model).utilisation
        is_relief = move.kind == "split" and cause == "capacity" and utilisation < before
        assert utilisation <= 1.0 or is_relief
        undone = post_check(report, after, "capacity", THRESHOLDS, capacity, model)(inverse(move))
        asks_back = utilisation < THRESHOLDS.lower if move.kind == "split" else utilisation > THRESHOLDS.upper
        assert not (asks_back and undone)


def test_each_move_is_judged_on_the_composition_after_it() -> None:
    """4800 tokens in 1 s: four CP2 carry 4 / 0.8 = 5 a ms, so two CP1 may merge; 2 CP1 + CP2 + CP4 carry
    2 + 1.25 + 1 / 0.75 = 4.58, so two CP2 may not.
    """
    composition = a_composition("0x1", "1x1", "2x2", "4x2", "6x2")
    model = a_model(d1=(0, 1e6), d2=(0, 0.8e6), d4=(0, 0.75e6))
    report = a_report(sizes=(SizeClass(48, 100, 0),), span_ns=10**9)
    capacity = Capacity({1: 1.0, 2: 1.0, 4: 1.0})
    test = post_check(report, composition, "capacity", THRESHOLDS, capacity, model)
    into_cp2, into_cp4 = (move for move in moves(composition, EIGHT) if move.kind == "merge")
    assert (str(into_cp2), test(into_cp2)) == ("merge 0x1 + 1x1 -> 0x2", True)
    assert (str(into_cp4), test(into_cp4)) == ("merge 4x2 + 6x2 -> 4x4", False)
