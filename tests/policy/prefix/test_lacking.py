"""What splits leave to reconcile: one walk gives what looking at each half by itself would."""

from hypothesis import given
from hypothesis import strategies as st

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.move import Move
from vertumnus.policy.prefix.demand import Demand
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.prefix.lacking import lacking_after

WORKERS = (CpGroup(0, 4), CpGroup(4, 2), CpGroup(6, 1), CpGroup(7, 1))
SPLITS = [Move("split", (worker,), worker.halves) for worker in WORKERS[:2]]
MERGE = Move("merge", WORKERS[2:], (CpGroup(6, 2),))


def a_demand(*counts: tuple[int, int, int]) -> Demand:
    """Access of (block, degree) so many times, one decay by a third after every fifth."""
    demand = Demand(2 / 3)
    for place, (key, degree, count) in enumerate(counts):
        for _ in range(count):
            demand.add_access(key, degree)
        if place % 5 == 4:
            demand.decay()
    return demand


def test_by_hand() -> None:
    """0x4 has 1 on rank 0 and 2 on rank 3, with 3 and 5 uses at degree 4; 4x2 has 4, used once: 8 and 1.

    Block 3, used twice, is on both halves of 0x4 and counts for each as what the other one holds: 12.
    """
    index = PrefixIndex(WORKERS)
    index.install((1, 2), 0, (0, 3))
    index.install((3,), 0, (1,))
    index.install((3,), 0, (2,))
    index.install((4,), 0, (5,))
    index.install((5,), 0, (7,))
    demand = a_demand((1, 4, 3), (2, 4, 5), (3, 4, 2), (4, 2, 1))
    demand.add_access(1, 2)
    demand.add_access(5, 1)
    assert lacking_after([*SPLITS, MERGE], index, demand) == [12.0, 1.0, 0.0]


@given(
    st.dictionaries(st.integers(1, 12), st.sets(st.integers(0, 7), min_size=1)),
    st.lists(st.tuples(st.integers(1, 12), st.sampled_from([1, 2, 4]), st.integers(1, 3)), max_size=20),
)
def test_one_walk_is_as_good_as_many(owners, counts) -> None:
    """To the last bit: what each half lacks, block by block in the order in which they came."""
    index, demand = PrefixIndex(WORKERS), a_demand(*counts)
    for key, ranks in owners.items():
        for rank in ranks:
            index.install((key,), 0, (rank,))

    def lacking(half: CpGroup, source: CpGroup) -> float:
        return sum(demand.access(key, source.degree) for key in index.keys_on(source.mask & ~half.mask))

    plain = [sum(lacking(half, move.sources[0]) for half in move.targets) for move in SPLITS]
    assert lacking_after([SPLITS[0], MERGE, SPLITS[1]], index, demand) == [plain[0], 0.0, plain[1]]
