"""The block cache against a naive model: who is evicted, who may not be, and where blocks go (sec. 7, 8)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.residency import ranks_of
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.facts import Evicted
from vertumnus.workers.block_cache import BlockCache

GROUP = CpGroup(4, 2)


def a_key(path: tuple[int, ...]) -> int:
    """Number a path in a binary tree: equal keys are equal prefixes."""
    return int("1" + "".join(map(str, path)), 2)


def keys_of(path: tuple[int, ...]) -> tuple[int, ...]:
    """Return the keys of a path's prefixes, root first."""
    return tuple(a_key(path[: depth + 1]) for depth in range(len(path)))


def hold(cache: BlockCache, keys: tuple[int, ...]) -> None:
    """Compute a prompt of these whole blocks from scratch and leave it idle."""
    cache.install(keys, 0, cache.reserve(0, len(keys)).slots)
    cache.unpin(keys)


class NaiveCache:
    """The same promises without cleverness: stamps of last use, and a search for leaves."""

    def __init__(self, group: CpGroup, blocks_per_rank: int) -> None:
        self.group, self.per_rank = group, blocks_per_rank
        self.rank_of: dict[int, int] = {}
        self.parent: dict[int, int | None] = {}
        self.pins: dict[int, int] = {}
        self.last_use: dict[int, int] = {}
        self.reserved: list[int] = []
        self.clock = 0

    def free_on(self, rank: int) -> int:
        return self.per_rank - list(self.rank_of.values()).count(rank) - self.reserved.count(rank)

    def use(self, keys: tuple[int, ...]) -> None:
        self.clock += 1
        self.last_use.update(dict.fromkeys(keys, self.clock))

    def leading(self, keys: tuple[int, ...]) -> int:
        return next((i for i, key in enumerate(keys) if key not in self.rank_of), len(keys))

    def evict_one(self) -> tuple[int, int]:
        """Evict the least recently used of the unpinned leaves."""
        inner = {self.parent[key] for key in self.rank_of}
        leaves = [key for key in self.rank_of if key not in inner and not self.pins[key]]
        key = min(leaves, key=lambda leaf: self.last_use[leaf])
        return self.rank_of.pop(key), key

    def reserve(self, first: int, blocks: int) -> list[tuple[int, int]]:
        free = sum(map(self.free_on, self.group.ranks))
        evicted = [self.evict_one() for _ in range(blocks - free)]
        for block in range(first, first + blocks):
            rank = self.group.first_rank + block % self.group.degree
            if not self.free_on(rank):
                rank = max(self.group.ranks, key=self.free_on)
            self.reserved.append(rank)
        return evicted

    def idle(self) -> int:
        return sum(not self.pins[key] for key in self.rank_of)


class Pair:
    """A cache and its naive model, given the same requests."""

    def __init__(self, degree: int, blocks_per_rank: int) -> None:
        self.group = CpGroup(4, degree)
        self.cache = BlockCache(self.group, blocks_per_rank)
        self.naive = NaiveCache(self.group, blocks_per_rank)
        self.open: list[tuple[int, ...]] = []

    def begin(self, keys: tuple[int, ...], partial: bool) -> None:
        """Reuse what is resident, reserve and install the rest, keep it pinned."""
        cache, naive = self.cache, self.naive
        first = cache.leading_blocks(keys)
        assert first == naive.leading(keys)
        cache.pin(keys[:first])
        for key in keys[:first]:
            naive.pins[key] += 1
        blocks = len(keys) - first + partial
        free = sum(map(naive.free_on, self.group.ranks))
        assert cache.has_room(blocks) == (blocks <= free + naive.idle())
        if not cache.has_room(blocks):
            self.end(keys[:first])
            return
        reservation = cache.reserve(first, blocks)
        gone = naive.reserve(first, blocks)
        self.compare(reservation.evicted, gone)
        ranks = [slot // cache.blocks_per_rank for slot in reservation.slots]
        assert ranks == naive.reserved
        cache.install(keys, first, reservation.slots)
        for key, parent, rank in zip(keys[first:], (None, *keys)[first:], ranks, strict=False):
            naive.rank_of[key], naive.parent[key], naive.pins[key] = rank, parent, 1
        naive.reserved = []
        cache.release(reservation.slots[len(keys) - first :])
        self.open.append(keys)

    def compare(self, evicted: tuple[Evicted, ...], gone: list[tuple[int, int]]) -> None:
        told = [(rank, key) for rank, keys in evicted for key in keys]
        assert sorted(told) == sorted(gone)
        assert [rank for rank, _ in evicted] == sorted({rank for rank, _ in gone})
        for rank, keys in evicted:
            assert list(keys) == [key for on, key in gone if on == rank]

    def end(self, keys: tuple[int, ...]) -> None:
        self.cache.unpin(keys)
        for key in keys:
            self.naive.pins[key] -= 1
        # a block that others still pin is used again when the last pin goes
        self.naive.use(tuple(key for key in keys if not self.naive.pins[key]))

    def touch(self, keys: tuple[int, ...]) -> None:
        held = keys[: self.cache.leading_blocks(keys)]
        self.cache.touch(held)
        self.naive.use(tuple(key for key in held if not self.naive.pins[key]))

    def check(self) -> None:
        self.cache.check(self.naive.parent)
        assert sorted(ranks_of(self.cache)) == sorted(self.naive.rank_of.values())
        assert self.cache.resident == len(self.naive.rank_of)
        assert self.cache.pinned == self.cache.resident - self.naive.idle()
        slots = self.cache.slots_of(self.naive.rank_of)
        assert len(set(slots)) == len(slots)
        assert [slot // self.cache.blocks_per_rank for slot in slots] == list(self.naive.rank_of.values())


paths = st.lists(st.integers(0, 1), min_size=1, max_size=5).map(tuple)
actions = st.lists(
    st.tuples(st.sampled_from(["begin", "begin", "end", "touch"]), paths, st.booleans()), max_size=40
)


@settings(max_examples=120)
@given(st.sampled_from([1, 2, 4]), st.integers(1, 5), actions)
def test_cache_equals_the_naive_model(degree: int, blocks_per_rank: int, actions) -> None:
    """Victims are the least recently used unpinned leaves, in order; slots, pins and ranks agree."""
    pair = Pair(degree, blocks_per_rank)
    for action, path, flag in actions:
        if action == "begin":
            pair.begin(keys_of(path), flag)
        elif action == "touch":
            pair.touch(keys_of(path))
        elif pair.open:
            pair.end(pair.open.pop(0 if flag else -1))
        pair.check()
    while pair.open:
        pair.end(pair.open.pop())
    assert pair.cache.pinned == 0


def test_the_least_recently_used_leaf_goes_first() -> None:
    """Of two branches below one root the older goes, leaf before parent; the shared root stays."""
    cache = BlockCache(CpGroup(0, 1), 5)
    hold(cache, (1, 2, 3))
    cache.pin((1,))
    cache.install((1, 7, 8), 1, cache.reserve(1, 2).slots)
    cache.unpin((1, 7, 8))
    assert cache.reserve(0, 3).evicted == (Evicted(0, (3, 2, 8)),)
    assert 1 in cache and 7 in cache


def test_a_touch_saves_a_path_from_eviction() -> None:
    """Of two idle prompts the one that was not touched goes first, and then the other leaf first."""
    cache = BlockCache(CpGroup(0, 1), 4)
    hold(cache, (1, 2))
    hold(cache, (5, 6))
    cache.touch((1, 2))
    assert cache.reserve(0, 3).evicted == (Evicted(0, (6, 5, 2)),)


def test_a_pin_counts() -> None:
    """A block that two prompts pin is idle only after both have unpinned it."""
    cache = BlockCache(CpGroup(0, 1), 2)
    hold(cache, (1,))
    cache.pin((1,))
    cache.pin((1,))
    cache.unpin((1,))
    assert cache.pinned == 1
    assert not cache.has_room(2)
    cache.unpin((1,))
    assert cache.pinned == 0
    assert cache.has_room(2)


def test_blocks_go_round_the_ranks() -> None:
    """Block i goes to rank i mod C, counted from the block's place in the prompt."""
    cache = BlockCache(GROUP, 4)
    slots = cache.reserve(1, 4).slots
    assert [slot // 4 for slot in slots] == [5, 4, 5, 4]


def test_a_full_rank_sends_its_blocks_to_the_emptiest() -> None:
    """Any ownership is exact: a prompt fits while the worker as a whole has room."""
    cache = BlockCache(CpGroup(4, 4), 2)
    cache.reserve(0, 1), cache.reserve(0, 1), cache.reserve(1, 1)
    assert [slot // 2 for slot in cache.reserve(0, 1).slots] == [6]
    assert [slot // 2 for slot in cache.reserve(0, 1).slots] == [7]


def test_no_room_changes_nothing() -> None:
    """A reservation that cannot be met raises and leaves blocks and slots as they were."""
    cache = BlockCache(GROUP, 2)
    hold(cache, (1, 2))
    cache.pin((1, 2))
    with pytest.raises(InvariantError, match="worker 4x2: no room for 3 blocks"):
        cache.reserve(2, 3)
    assert (cache.used, cache.resident, cache.pinned) == (2, 2, 2)
    cache.check()


def test_a_resident_block_keeps_its_slot() -> None:
    """Installing a block again pins the copy that is there; the caller keeps the slot it reserved."""
    cache = BlockCache(GROUP, 4)
    hold(cache, (1, 2))
    (before,) = cache.slots_of((2,))
    cache.pin((1,))
    mine = cache.reserve(1, 1).slots
    assert cache.install((1, 2), 1, mine) == [before]
    assert mine != [before]
    assert (cache.pinned, cache.used) == (2, 3)
    cache.unpin((1, 2))
    cache.release(mine)
    assert (cache.pinned, cache.used) == (0, 2)
    cache.check()


def test_a_slot_beyond_the_whole_blocks_stays_private() -> None:
    """A partial last block has a slot and no key: it is neither installed nor found later."""
    cache = BlockCache(GROUP, 4)
    slots = cache.reserve(0, 3).slots
    assert cache.install((1, 2), 0, slots) == slots[:2]
    assert (cache.used, cache.resident) == (3, 2)


def test_leading_blocks_stop_at_the_first_gap() -> None:
    """What lies behind a missing block is not a hit."""
    cache = BlockCache(GROUP, 4)
    hold(cache, (1, 2))
    assert [cache.leading_blocks(keys) for keys in [(1, 2, 3), (1, 9, 2), (9, 1), ()]] == [2, 1, 0, 0]


def a_damaged_cache(damage: str) -> BlockCache:
    """Return a cache of one idle and one pinned path whose books were spoilt."""
    cache = BlockCache(GROUP, 4)
    hold(cache, (1, 2))
    cache.pin((1,))
    if damage == "slot freed twice":
        cache.release(cache.slots_of((1,)))
    elif damage == "slot freed that nobody had":
        cache.release((GROUP.first_rank * 4 + 3,))
    elif damage == "two blocks in one slot":
        cache.install((3,), 0, cache.slots_of((1,)))
        cache.unpin((3,))
    elif damage == "one pin too few":
        cache.unpin((1,))
        cache.unpin((1,))
    elif damage == "child pinned without its parent":
        cache.unpin((1,))
        cache.pin((2,))
    return cache


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("slot freed twice", "free twice, or free and in use"),
        ("slot freed that nobody had", "free twice"),
        ("two blocks in one slot", "held twice"),
        ("one pin too few", "pins and idle list disagree"),
        ("child pinned without its parent", "block 2 outlives or outpins its parent"),
    ],
)
def test_the_audit_notices(damage: str, complaint: str) -> None:
    """A sound cache passes; each kind of damage is named."""
    parents = {1: None, 2: 1}
    a_damaged_cache("none").check(parents)
    with pytest.raises(InvariantError, match=complaint):
        a_damaged_cache(damage).check(parents)


def test_the_audit_notices_a_block_without_its_parent() -> None:
    """A resident block whose parent is not resident is found, pinned or not."""
    with pytest.raises(InvariantError, match="block 2 outlives or outpins its parent"):
        a_damaged_cache("none").check({1: None, 2: 9})


def test_memory_that_nobody_used_costs_an_audit_nothing() -> None:
    """Slots that were never taken are counted, not listed: a rank may have 2**53 of them."""
    cache = BlockCache(GROUP, 2**53)
    hold(cache, (1, 2))
    cache.check()
    assert cache.used == 2
