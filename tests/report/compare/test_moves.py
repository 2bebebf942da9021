"""What a controller's moves amount to, by hand and in general."""

from hypothesis import given
from hypothesis import strategies as st

from vertumnus.report.compare.moves import Move, Movement, movement
from vertumnus.report.phases import Stretch, _cut

PHASES = [Stretch("phase 1", 0.0, 100.0), Stretch("phase 2", 100.0, 200.0), Stretch("phase 3", 200.0, 1e9)]


def moves(*told: tuple[float, str]) -> list[Move]:
    """Return moves at those times."""
    return [Move(*each) for each in told]


def test_by_hand() -> None:
    """Two splits in phase 2, the first 40 s into it; a merge and a split back in phase 3."""
    told = moves((140.0, "split"), (160.0, "split"), (230.0, "merge"), (290.0, "split"), (300.0, "merge"))
    assert movement(told, PHASES) == Movement(5, 2, (40.0, 30.0))


def test_a_change_of_direction_between_phases_is_no_reversal() -> None:
    """A split in one phase and a merge in the next follow demand; the last phase has no end."""
    assert movement(moves((150.0, "split"), (200.0, "merge")), PHASES) == Movement(2, 0, (50.0, 0.0))


def test_without_moves() -> None:
    """No delay is known."""
    assert movement([], PHASES) == Movement(0, 0, (None, None))


@given(st.lists(st.tuples(st.floats(0.0, 400.0), st.sampled_from(["split", "merge"])), max_size=12))
def test_bounds_hold_for_any_moves(told: list[tuple[float, str]]) -> None:
    """Every move counts once; reversals stay below the moves; a delay lies within its phase."""
    found = movement(moves(*sorted(told)), PHASES)
    assert found.moves == len(told)
    assert 0 <= found.reversals <= max(0, len(told) - 1)
    for delay, phase in zip(found.first_s, PHASES[1:], strict=True):
        assert delay is None or 0.0 <= delay < phase.end_s - phase.start_s


def test_a_window_of_the_workload_cuts_its_phases() -> None:
    """From 150 s on, at half the pace: the second of two 100 s phases lasts 100 s, then comes the rest."""
    assert _cut([100.0, 100.0, 50.0], 150.0, 2.0) == [
        Stretch("phase 2", 0.0, 100.0),
        Stretch("phase 3", 100.0, float("inf")),
    ]
