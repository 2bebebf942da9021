"""Reports of what workers hold: each counts at its age, in the order in which they were made."""

from tests.support.builders import BLOCK_TOKENS, a_prefill_time
from tests.support.residency import known_by_rank
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Evicted
from vertumnus.policy.config import CacheConfig
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.prefix.residency import Held, Lost, Residency
from vertumnus.policy.statistics import PrefixStatistics

PAIR, SINGLE = CpGroup(0, 2), CpGroup(2, 1)
DELAY = 100


class Rig:
    """An index of two workers whose reports count when they are 100 ns old."""

    def __init__(self, delay_ns: int = DELAY) -> None:
        self.index = PrefixIndex([PAIR, SINGLE])
        statistics = PrefixStatistics(CacheConfig(), self.index, a_prefill_time(), BLOCK_TOKENS)
        self.residency = Residency(self.index, statistics, delay_ns)

    def hold(self, path: tuple[int, ...], first_block: int, owners: tuple[int, ...], at: int) -> None:
        self.residency.report([Held(path, first_block, owners)], at)

    def held(self) -> list[int]:
        """Leading blocks of 1, 2, 3 at the pair and at the single worker."""
        return self.index.match((1, 2, 3)).held


def test_without_a_delay_a_report_counts_at_once() -> None:
    """As if there were no residency in between."""
    rig = Rig(delay_ns=0)
    rig.hold((1, 2), 0, (0, 1), at=5)
    assert rig.held() == [2, 0] and len(rig.residency) == 0


def test_reports_count_at_their_age_in_order() -> None:
    """Two blocks computed at 5, one more at 50, which is gone at 60: 0, 2, 3, 2 leading blocks."""
    rig = Rig()
    rig.hold((1, 2), 0, (0, 1), at=5)
    rig.hold((1, 2, 3), 2, (0,), at=50)
    rig.residency.report([Evicted(0, (3,))], 60)
    seen = []
    for now in (104, 105, 150, 160):
        rig.residency.catch_up(now)
        seen.append(rig.held()[0])
    assert seen == [0, 2, 3, 2]


def test_a_loss_counts_in_its_turn() -> None:
    """What the pair reported before it was lost is held until then; the other worker is left alone."""
    rig = Rig()
    rig.hold((1, 2), 0, (0, 1), at=5)
    rig.residency.report([Lost(PAIR.mask)], 20)
    rig.hold((1,), 0, (2,), at=30)
    rig.residency.catch_up(110)
    assert rig.held() == [2, 0]
    rig.residency.catch_up(130)
    assert rig.held() == [0, 1]
    assert known_by_rank(rig.index) == {2: 1}
    rig.index.check()
