"""PreferDegree: without load, on copies as they are or as if the best one were everywhere."""

import pytest

from tests.support.builders import a_request
from tests.support.control_rig import KEYS, LEFT, PAIR, Rig
from vertumnus.policy.config import CacheConfig
from vertumnus.policy.prefix.config import ManagerConfig


def missed(rig: Rig) -> dict[int, float]:
    """What each degree has missed of the prefix's first block [ns]."""
    return {degree: rig.control.statistics.demand.missed_ns(KEYS[0], degree) for degree in (1, 2)}


@pytest.mark.parametrize(("preferred", "counts"), [("observed", False), ("counterfactual", True)])
def test_a_degree_is_not_judged_by_what_it_lacks(preferred: str, counts: bool) -> None:
    """A short rest of a long hit runs best at degree 1, which holds nothing: only ours counts that.

    As published, degree 1 is charged the full prefill, so degree 2 is preferred, and misses nothing.
    """
    cache = CacheConfig(manager=ManagerConfig(preferred_degree=preferred))
    rig = Rig(cache=cache)
    rig.seed(PAIR)
    rig.arrive(a_request(0, input_tokens=136, block_keys=KEYS))
    assert (missed(rig)[1] > 0.0, missed(rig)[2]) == (counts, 0.0)


def test_with_copies_everywhere_both_readings_agree() -> None:
    """Nothing is missed where every degree holds the prefix."""
    for preferred in ("observed", "counterfactual"):
        rig = Rig(cache=CacheConfig(manager=ManagerConfig(preferred_degree=preferred)))
        rig.seed(PAIR)
        rig.seed(LEFT)
        rig.arrive(a_request(0, input_tokens=136, block_keys=KEYS))
        assert missed(rig) == {1: 0.0, 2: 0.0}
