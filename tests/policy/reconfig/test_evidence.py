"""Gains that add up: worked by hand, and what holds for every sequence of forecasts."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.reconfig import inverse
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.move import Move
from vertumnus.policy.reconfig.evidence import NOTHING, Evidence, Gain

SPLIT = Move("split", (CpGroup(0, 2),), CpGroup(0, 2).halves)
MERGE = inverse(SPLIT)

shares = st.none() | st.floats(-2.0, 0.9)


def gains(split: float | None, merge: float | None) -> dict[str, Gain]:
    """What one forecast says; None where no move of the kind was looked at."""
    said = {"split": (SPLIT, split), "merge": (MERGE, merge)}
    return {kind: Gain(move, share) for kind, (move, share) in said.items() if share is not None}


def test_by_hand() -> None:
    """0.25, 0.5, then -1 back to 0, then 0.125; the merge is not looked at once and starts anew."""
    evidence = Evidence()
    for split, merge in [(0.25, 0.5), (0.25, None), (-1.0, 0.25)]:
        evidence.add(gains(split, merge))
    assert evidence.of("split") == NOTHING
    assert evidence.of("merge") == (0.25, 1)
    assert evidence.leading() == "merge"
    evidence.add(gains(0.125, 0.0))
    assert evidence.of("split") == (0.125, 1) and evidence.of("merge") == (0.25, 0)
    assert evidence.leading() == "split", "the last forecast speaks against the merge"


@given(st.lists(st.tuples(shares, shares), max_size=12))
def test_sums_and_what_leads(told) -> None:
    """No sum is below 0 or above that of the gains alone, and what leads gained in the last forecast."""
    evidence = Evidence()
    for each in told:
        evidence.add(gains(*each))
    for place, kind in enumerate(("split", "merge")):
        shown = evidence.of(kind)
        assert 0.0 <= shown.gain <= sum(max(0.0, each[place] or 0.0) for each in told) + 1e-9
    leading = evidence.leading()
    if leading is None:
        assert not told or all((share or 0.0) <= 0.0 for share in told[-1])
    else:
        assert told[-1][leading == "merge"] > 0.0
    evidence.forget()
    assert evidence.leading() is None and evidence.of("split") == NOTHING
