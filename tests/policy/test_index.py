"""The prefix index against a naive model: matched path, reused paths, replica counts (sec. 7.1, D1)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.residency import known_by_rank
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError, ProtocolError
from vertumnus.policy.prefix.index import Match, PrefixIndex

PAIR, LEFT, RIGHT = WORKERS = (CpGroup(0, 2), CpGroup(2, 1), CpGroup(3, 1))


def an_index() -> PrefixIndex:
    """1-2-3 on the pair (ranks 0, 1, 0), 1-2 on the left worker, 1-7 on the right one."""
    index = PrefixIndex(WORKERS)
    index.install((1, 2, 3), 0, (0, 1, 0))
    index.install((1, 2), 0, (2, 2))
    index.install((1, 7), 0, (3, 3))
    return index


@pytest.mark.parametrize(
    ("keys", "held", "known"),
    [
        ((1, 2, 3, 4), [3, 2, 1], 3),
        ((1, 7, 9), [1, 1, 2], 2),
        ((5, 1), [0, 0, 0], 0),
        ((1,), [1, 1, 1], 1),
        ((), [0, 0, 0], 0),
    ],
)
def test_match_by_hand(keys: tuple[int, ...], held: list[int], known: int) -> None:
    """Each worker counts its own leading blocks; the matched path is where anybody's tree ends."""
    assert an_index().match(keys) == Match(held, known)


def test_a_worker_holds_what_any_of_its_ranks_holds() -> None:
    """Ranks 0 and 1 hold alternate blocks: the degree-2 worker holds the prefix (any-rank ownership)."""
    index = PrefixIndex(WORKERS)
    index.install((1, 2, 3), 0, (1, 0, 1))
    assert index.match((1, 2, 3)).held == [3, 0, 0]


@pytest.mark.parametrize(
    ("key", "at_1", "at_2", "at_4"), [(1, 2, 1, 0), (2, 1, 1, 0), (3, 0, 1, 0), (8, 0, 0, 0)]
)
def test_replica_count_by_hand(key: int, at_1: int, at_2: int, at_4: int) -> None:
    """ReplicaCount(z, C) counts workers of the degree, not ranks, and 0 where there is none."""
    index = an_index()
    assert [index.replica_count(key, degree) for degree in (1, 2, 4)] == [at_1, at_2, at_4]


def test_a_block_without_holders_still_matches() -> None:
    """Evicted everywhere, a node stays on the matched path, since its demand goes on counting."""
    index = an_index()
    assert index.evict(0, (3,)) == [3]
    assert index.match((1, 2, 3)) == Match([2, 2, 1], 3)
    assert index.replica_count(3, 2) == 0


def test_evict_tells_whom_nobody_holds() -> None:
    """A block that another rank keeps is not orphaned."""
    index = an_index()
    assert index.evict(1, (2,)) == []
    assert index.evict(2, (2, 1)) == [2]


def test_forget_is_the_eviction_of_whole_ranks() -> None:
    """A lost worker holds nothing; what only it held is told in the order of its installs."""
    index = an_index()
    assert index.forget(PAIR.mask) == [3]
    assert index.match((1, 2, 3)) == Match([0, 2, 1], 3)
    assert index.forget(LEFT.mask | RIGHT.mask) == [1, 2, 7]
    assert known_by_rank(index) == {}


def test_drop_takes_leaves_without_holders_only() -> None:
    """A node with holders or children cannot go; a bare leaf can, and then its parent can."""
    index = an_index()
    for key in (3, 2):
        with pytest.raises(ProtocolError, match=f"block {key} is held or has children"):
            index.drop(key)
    index.forget(PAIR.mask | LEFT.mask)
    with pytest.raises(ProtocolError, match="block 2 is held or has children"):
        index.drop(2)
    index.drop(3)
    index.drop(2)
    assert len(index) == 2
    assert index.node(2) is None
    assert index.match((1, 2, 3)).known == 1
    index.check()


def test_depth_counts_from_the_root() -> None:
    """A node knows its parent and the length of its prefix in blocks."""
    node = an_index().node(3)
    assert node is not None
    assert (node.parent, node.depth, node.owners, node.children) == (2, 3, 0b1, 0)


def test_installing_again_changes_nothing() -> None:
    """A block that is installed twice has one owner bit and is counted once."""
    index = an_index()
    before = known_by_rank(index)
    index.install((1, 2, 3), 2, (0,))
    assert known_by_rank(index) == before == {0: 2, 1: 1, 2: 2, 3: 2}


def test_owners_match_the_blocks() -> None:
    """One owner for each installed block, neither fewer nor more."""
    with pytest.raises(ValueError, match="zip"):
        PrefixIndex(WORKERS).install((1, 2), 0, (0,))


def test_the_audit_notices_a_child_without_its_parent() -> None:
    """Holders are closed under ancestors: a parent evicted before its child is found."""
    index = an_index()
    index.check()
    index.evict(1, (2,))
    with pytest.raises(InvariantError, match="block 3: held where its parent 2 is not"):
        index.check()


def test_the_audit_notices_a_node_that_lies_elsewhere() -> None:
    """A node whose depth is not its parent's plus one, or whose children are miscounted, is found."""
    index = an_index()
    index.node(3).depth = 7
    with pytest.raises(InvariantError, match="block 3: its parent 2 is not the node before it"):
        index.check()
    index = an_index()
    index.node(2).children = 2
    with pytest.raises(InvariantError, match="children miscounted"):
        index.check()


def a_key(path: tuple[int, ...]) -> int:
    """Number a path in a tree of three branches."""
    return int("1" + "".join(map(str, path)), 3)


def prefixes(path: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the path's prefixes, shortest first."""
    return [path[: depth + 1] for depth in range(len(path))]


class NaiveIndex:
    """A set of paths for each rank, and every path that was ever installed and not dropped."""

    def __init__(self) -> None:
        self.on_rank: dict[int, set[tuple[int, ...]]] = {rank: set() for rank in range(4)}
        self.known: set[tuple[int, ...]] = set()

    def at(self, worker: CpGroup) -> set[tuple[int, ...]]:
        return set().union(*(self.on_rank[rank] for rank in worker.ranks))

    def leading(self, paths: list[tuple[int, ...]], there: set[tuple[int, ...]]) -> int:
        return next((i for i, path in enumerate(paths) if path not in there), len(paths))

    def match(self, path: tuple[int, ...]) -> Match:
        paths = prefixes(path)
        return Match([self.leading(paths, self.at(w)) for w in WORKERS], self.leading(paths, self.known))

    def is_held(self, path: tuple[int, ...]) -> bool:
        return any(path in held for held in self.on_rank.values())


def install(index: PrefixIndex, naive: NaiveIndex, worker: CpGroup, path: tuple[int, ...], seed: int) -> None:
    """A step of *worker* computes what it lacks of the path, on whichever of its ranks."""
    first = naive.leading(prefixes(path), naive.at(worker))
    new = prefixes(path)[first:]
    owners = [worker.first_rank + (seed >> place) % worker.degree for place in range(len(new))]
    index.install([a_key(prefix) for prefix in prefixes(path)], first, owners)
    for prefix, owner in zip(new, owners, strict=True):
        naive.on_rank[owner].add(prefix)
        naive.known.add(prefix)


def evict(index: PrefixIndex, naive: NaiveIndex, worker: CpGroup, seed: int) -> None:
    """*worker* evicts one of its leaves."""
    held = naive.at(worker)
    leaves = sorted(path for path in held if not any(other[:-1] == path for other in held))
    if leaves:
        path = leaves[seed % len(leaves)]
        (rank,) = [rank for rank in worker.ranks if path in naive.on_rank[rank]]
        naive.on_rank[rank].discard(path)
        orphans = index.evict(rank, (a_key(path),))
        assert orphans == ([] if naive.is_held(path) else [a_key(path)])


def drop(index: PrefixIndex, naive: NaiveIndex, seed: int) -> None:
    """Forget a leaf that nobody holds."""
    bare = [path for path in sorted(naive.known) if not naive.is_held(path)]
    bare = [path for path in bare if not any(other[:-1] == path for other in naive.known)]
    if bare:
        path = bare[seed % len(bare)]
        naive.known.discard(path)
        index.drop(a_key(path))


def test_what_nobody_owns_any_more_is_not_kept() -> None:
    """1,000 sets of owners one after the other, each looked up: the index remembers the last one only."""
    index = PrefixIndex(tuple(CpGroup(rank, 1) for rank in range(10)))
    for owners in range(1, 1_001):
        ranks = [rank for rank in range(10) if owners >> rank & 1]
        for rank in ranks:
            index.install((1,), 0, (rank,))
        assert index.match((1,)).held == [int(rank in ranks) for rank in range(10)]
        assert index.replicas(owners) == ((1, len(ranks)),)
        if owners < 1_000:
            for rank in ranks:
                index.evict(rank, (1,))
    assert index.copies() == {1: len(ranks)}
    assert set(index._holders_of) == {0, 1_000} and set(index._replicas_of) == {1_000}


actions = st.lists(
    st.tuples(
        st.sampled_from(["install", "install", "evict", "evict", "drop", "lose"]),
        st.sampled_from(WORKERS),
        st.lists(st.integers(0, 2), min_size=1, max_size=5).map(tuple),
        st.integers(0, 63),
    ),
    max_size=40,
)


@settings(max_examples=120)
@given(actions, st.lists(st.lists(st.integers(0, 2), max_size=6).map(tuple), min_size=1, max_size=4))
def test_index_equals_the_naive_model(steps, probes) -> None:
    """After any installs, evictions, losses and drops: matches, replica counts and residency agree."""
    index, naive = PrefixIndex(WORKERS), NaiveIndex()
    for action, worker, path, seed in steps:
        if action == "install":
            install(index, naive, worker, path, seed)
        elif action == "evict":
            evict(index, naive, worker, seed)
        elif action == "drop":
            drop(index, naive, seed)
        else:
            index.forget(worker.mask)
            for rank in worker.ranks:
                naive.on_rank[rank].clear()
        index.check()
    assert known_by_rank(index) == {rank: len(held) for rank, held in naive.on_rank.items() if held}
    assert len(index) == len(naive.known)
    for path in (*probes, *sorted(naive.known)):
        assert index.match([a_key(prefix) for prefix in prefixes(path)]) == naive.match(path)
    for path in naive.known:
        for degree in (1, 2):
            holders = [worker for worker in WORKERS if worker.degree == degree and path in naive.at(worker)]
            assert index.replica_count(a_key(path), degree) == len(holders)
