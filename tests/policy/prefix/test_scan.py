"""Algorithm 2's three lists, against the published rule over every block and degree."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.tries import BRANCH, LEFT, OTHER, PAIR, RIGHT, WIDE, Trie
from vertumnus.policy.prefix.config import ManagerConfig
from vertumnus.policy.prefix.scan import Candidate, inter_candidates, intra_candidates, reclaim_candidates

DEGREES = (1, 2)
WORKERS = (WIDE, PAIR, LEFT, RIGHT)


def reclaimable(trie: Trie, theta_reclaim: float, grace_scans: int) -> list[Candidate]:
    """Every candidate for reclamation."""
    replicated = list(trie.index.replicated().items())
    return reclaim_candidates(trie.index, trie.demand, replicated, theta_reclaim, grace_scans, 1_000)


def test_a_degree_without_a_copy_that_missed_enough_wants_one() -> None:
    """missed[3, 1] is 0.2 s with a bound of 0.1 s; block 2 missed too little."""
    trie = Trie()
    trie.hold(WIDE)
    trie.miss((3,), 1, 200)
    trie.miss((2,), 1, 90)
    (candidate,) = inter_candidates(trie.index, trie.demand.busy(), DEGREES)
    assert (candidate.key, candidate.degree, candidate.depth, candidate.replicas) == (3, 1, 3, 0)
    assert candidate.demand == 200e6


def test_nobody_wants_what_nobody_holds() -> None:
    """A block that is gone everywhere is known by its demand only: there is nothing to copy."""
    trie = Trie()
    trie.hold(LEFT)
    trie.miss((4,), 2, 200)
    assert inter_candidates(trie.index, trie.demand.busy(), DEGREES)
    trie.index.evict(4, (4,))
    assert not inter_candidates(trie.index, trie.demand.busy(), DEGREES)


def test_replicas_that_are_asked_too_often_want_another() -> None:
    """Bound 2 a replica: five reuses of one replica are enough, of two replicas four are not."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(LEFT)
    trie.hold(RIGHT)
    trie.access((1, 2), 2, 5)
    trie.access((1,), 1, 4)
    found = intra_candidates(trie.index, trie.demand.busy(), DEGREES, 2.0)
    assert [(c.key, c.degree, c.replicas, c.demand) for c in found] == [(1, 2, 1, 5.0), (2, 2, 1, 5.0)]


def test_the_last_copy_and_young_blocks_are_not_reclaimed() -> None:
    """Blocks with two copies, none made in the last two scans."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(LEFT, OTHER)
    assert reclaimable(trie, 0.5, 2) == []
    trie.index.scan = 2
    found = reclaimable(trie, 0.5, 2)
    assert {(c.key, c.degree) for c in found} == {(1, 1), (1, 2), (2, 1), (2, 2)}
    trie.hold(RIGHT, OTHER[:1])
    assert {c.key for c in reclaimable(trie, 0.5, 2)} == {2}


def test_a_replica_that_is_reused_stays() -> None:
    """One reuse at degree 1 is above half a reuse for its one replica; degree 2 has none."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(LEFT)
    trie.access(BRANCH, 1, 1)
    trie.index.scan = 2
    assert {c.degree for c in reclaimable(trie, 0.5, 2)} == {2}


events = st.lists(
    st.tuples(
        st.sampled_from(["hold", "access", "miss", "decay", "look"]),
        st.sampled_from(WORKERS),
        st.sampled_from([BRANCH, OTHER]),
        st.integers(1, 4),
    ),
    max_size=40,
)


@given(events)
def test_the_lists_are_those_of_the_whole_scan(happened) -> None:
    """Looking only where it is busy or replicated finds what a look at every node and degree finds."""
    trie = Trie(ManagerConfig(theta_intra=1.5, theta_inter_s=0.2, theta_reclaim=0.7))
    for kind, worker, path, count in happened:
        if kind == "hold":
            trie.hold(worker, path[:count])
        elif kind == "access":
            trie.access(path[:count], worker.degree, 1)
        elif kind == "miss":
            trie.miss(path[:count], worker.degree, 90 * count)
        elif kind == "decay":
            trie.demand.decay()
        else:
            trie.demand.busy()
    inter, intra, reclaim = set(), set(), set()
    for key in (1, 2, 3, 4, 8, 9):
        for degree in DEGREES:
            r = trie.index.replica_count(key, degree)
            held = trie.index.holders(key)
            if r == 0:
                if held and trie.demand.missed_ns(key, degree) > 0.2e9:
                    inter.add((key, degree))
            elif trie.demand.access(key, degree) > r * 1.5:
                intra.add((key, degree))
            elif trie.demand.access(key, degree) < r * 0.7 and held.bit_count() > 1:
                reclaim.add((key, degree))
    index, demand = trie.index, trie.demand
    assert {(c.key, c.degree) for c in inter_candidates(index, demand.busy(), DEGREES)} == inter
    assert {(c.key, c.degree) for c in intra_candidates(index, demand.busy(), DEGREES, 1.5)} == intra
    assert {(c.key, c.degree) for c in reclaimable(trie, 0.7, 0)} == reclaim
