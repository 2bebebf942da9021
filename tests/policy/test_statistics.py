"""Algorithm 1 over the index, and when a block that nobody holds is forgotten (sec. 7.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import BLOCK_TOKENS, a_prefill_time, a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.request import reusable_tokens
from vertumnus.policy.config import CacheConfig
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.statistics import PrefixStatistics

KEYS = (1, 2, 3, 4, 5)
PREDICT = a_prefill_time().predict
WORKER = CpGroup(0, 2)


class Rig:
    """An index of one worker with statistics over it."""

    def __init__(self, **config: float) -> None:
        self.index = PrefixIndex([WORKER])
        self.statistics = PrefixStatistics(CacheConfig(**config), self.index, a_prefill_time(), BLOCK_TOKENS)
        self.demand = self.statistics.demand

    def hold(self, *keys: int) -> None:
        self.index.install(keys, 0, [0] * len(keys))

    def lose(self, *keys: int) -> None:
        self.statistics.note_unheld(self.index.evict(0, keys))


def test_access_counts_the_reused_path_only() -> None:
    """Of five matched blocks two are reused: one access each at the degree served (lines 1-2)."""
    rig = Rig()
    rig.statistics.count_reuse(a_request(0, input_tokens=90, block_keys=KEYS), 2, 2 * BLOCK_TOKENS)
    assert [rig.demand.access(key, 2) for key in KEYS] == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert rig.demand.access(1, 1) == 0.0


def test_missed_benefit_by_hand() -> None:
    """Blocks 3 and 4 have no copy at degree 2: each misses E(L - P0, P0) - E(L - P1, P1) (lines 5-9)."""
    rig = Rig()
    rig.statistics.count_missed(a_request(0, input_tokens=90, block_keys=KEYS), 4, 2, 2)
    assert [rig.demand.missed_ns(key, 2) for key in KEYS] == [
        0.0,
        0.0,
        PREDICT(2, 90 - 32, 32) - PREDICT(2, 90 - 48, 48),
        PREDICT(2, 90 - 48, 48) - PREDICT(2, 90 - 64, 64),
        0.0,
    ]
    # 16 tokens: 160 us of a, less 16 us of b, half of 1600 us of c, half of alpha on the triangle's strip
    assert rig.demand.missed_ns(3, 2) == pytest.approx(
        160e3 - 16e3 + 800e3 + 5 * (48 * 49 - 32 * 33) / 2, abs=2
    )
    assert rig.demand.missed_ns(3, 1) == 0.0


@given(st.integers(1, 200), st.integers(0, 12), st.integers(0, 12), st.sampled_from([1, 2, 4]))
def test_benefits_of_a_path_telescope(length: int, first: int, second: int, degree: int) -> None:
    """Along a path the benefits add up to what the whole missing part would save, counted once."""
    blocks = length // BLOCK_TOKENS
    held, known = sorted((min(first, blocks), min(second, blocks)))
    rig = Rig()
    request = a_request(0, input_tokens=length)
    rig.statistics.count_missed(request, known, held, degree)
    least, most = (reusable_tokens(length, BLOCK_TOKENS, n) for n in (held, known))
    saved = PREDICT(degree, length - least, least) - PREDICT(degree, length - most, most)
    assert sum(rig.demand.missed_ns(key, degree) for key in request.block_keys) == saved


def test_the_last_block_of_a_full_hit_would_save_nothing() -> None:
    """Its tokens are computed anyway (R >= 1), so no benefit is missed without it (case 12)."""
    rig = Rig()
    rig.statistics.count_missed(a_request(0, input_tokens=80, block_keys=KEYS), 5, 4, 2)
    assert rig.demand.missed_ns(5, 2) == 0.0


def test_unknown_content_has_no_demand() -> None:
    """A request without block keys counts nothing."""
    rig = Rig()
    request = a_request(0, input_tokens=80)
    rig.statistics.count_reuse(type(request)(0, 0, 80, 1, None), 2, 0)
    assert len(rig.demand) == 0


@pytest.mark.parametrize("order", [(3, 2, 1), (1, 2, 3), (2, 3, 1)])
def test_unheld_and_unwanted_blocks_go_leaves_first(order: tuple[int, ...]) -> None:
    """A path without demand is gone after the next scan, in whatever order its blocks are told."""
    rig = Rig()
    rig.hold(1, 2, 3)
    rig.lose(*order)
    rig.index.check()
    rig.statistics.scan()
    assert len(rig.index) == 0


def test_a_block_is_kept_until_its_demand_has_faded() -> None:
    """One reuse at decay 0.6 is below 0.01 after the tenth scan (0.6^9 = 0.0101), not before."""
    rig = Rig(decay=0.6, demand_floor=0.01)
    rig.hold(1)
    rig.demand.add_access(1, 2)
    rig.lose(1)
    for _ in range(9):
        rig.statistics.scan()
    assert (len(rig.index), len(rig.demand)) == (1, 1)
    rig.statistics.scan()
    assert (len(rig.index), len(rig.demand)) == (0, 0)


def test_missed_seconds_keep_a_block_too() -> None:
    """The floor is in seconds for missed time: 30 ms missed stays for three scans at decay 0.6."""
    rig = Rig(decay=0.6, demand_floor=0.01)
    rig.hold(1)
    rig.demand.add_missed(1, 2, 30_000_000)
    rig.lose(1)
    sizes = []
    for _ in range(3):
        rig.statistics.scan()
        sizes.append(len(rig.index))
    assert sizes == [1, 1, 0]


def test_a_block_with_a_wanted_descendant_stays() -> None:
    """The path to a block that is wanted stays whole; it goes when the block goes."""
    rig = Rig(decay=0.1, demand_floor=0.2)
    rig.hold(1, 2, 3)
    for _ in range(10):
        rig.demand.add_access(3, 2)
    rig.lose(3, 2, 1)
    rig.statistics.scan()
    assert len(rig.index) == 3
    rig.statistics.scan()
    assert len(rig.index) == 0


def test_a_block_that_came_back_is_left_alone() -> None:
    """Wanted, lost and computed again before its demand has faded, a block stays until it is lost again."""
    rig = Rig(decay=0.1, demand_floor=0.2)
    rig.hold(1)
    rig.demand.add_access(1, 2)
    rig.lose(1)
    rig.hold(1)
    for _ in range(3):
        rig.statistics.scan()
    assert rig.index.match((1,)).held == [1]
    rig.lose(1)
    rig.statistics.scan()
    assert len(rig.index) == 0


def test_demand_that_comes_while_a_block_fades_keeps_it() -> None:
    """A block that is missed again before it is due is kept for as long as the new demand lasts."""
    rig = Rig(decay=0.1, demand_floor=0.2)
    rig.hold(1)
    rig.demand.add_access(1, 2)
    rig.lose(1)
    rig.demand.add_access(1, 2)
    rig.demand.add_access(1, 2)
    rig.statistics.scan()
    assert len(rig.index) == 1
    rig.statistics.scan()
    assert (len(rig.index), len(rig.demand)) == (0, 0)
