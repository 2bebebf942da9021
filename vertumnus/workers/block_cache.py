"""A worker's local block index: slots, pins, versions and least-recently-used order (sec. 7, 8).

Rules
* A block that is resident has all its ancestors resident here too, or is stranded: its ancestors went
  to the other half of a split. A stranded block is no hit; it stays under ordinary eviction.
* A pinned block has all its ancestors pinned. Only idle (unpinned) blocks are evicted.
* Idle blocks are kept in order of last use, and every use of a path touches it from the leaf to the
  root, so a block always comes before its ancestors: the oldest idle block is a leaf, and evicting
  from the old end keeps the first rule without a search for leaves.
* Block i of a prompt goes to rank ``i mod C`` while that rank has room, else to the emptiest rank:
  any ownership is exact for prefill, so the memory of the worker is one pool.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.facts import Evicted
from vertumnus.domain.units import BlockKey, Nanoseconds, Rank, SlotId
from vertumnus.domain.wording import counted
from vertumnus.workers.free_slots import FreeSlots


class UseClock(Struct, gc=False):
    """Counts uses of blocks over all workers, so that the order of last use survives a split or merge."""

    ticks: int = 0
    now_ns: Nanoseconds = 0
    """When the event under way happens, as the fleet was told."""


class ResidentBlock(Struct, gc=False):
    """One block in memory."""

    slot: SlotId
    made_ns: Nanoseconds
    """When this copy was made: its version, which a deletion names."""
    parent: BlockKey | None
    """The block before it in its prefix."""
    pins: int
    last_use: int = 0
    """Tick of the clock at the last use that is over."""


class Reservation(NamedTuple):
    """Slots taken for the blocks that a step will write, and what left to make room."""

    slots: list[SlotId]
    evicted: tuple[Evicted, ...]


class BlockCache:
    """Which blocks a worker's ranks hold, and which slots are free."""

    def __init__(self, group: CpGroup, blocks_per_rank: int, clock: UseClock | None = None) -> None:
        self._group = group
        self._clock = clock or UseClock()
        self.blocks_per_rank = blocks_per_rank
        self.capacity = group.degree * blocks_per_rank
        """Slots of all ranks together [blocks]."""
        self._resident: dict[BlockKey, ResidentBlock] = {}
        self._idle: OrderedDict[BlockKey, None] = OrderedDict()
        self._free = [FreeSlots(rank, blocks_per_rank) for rank in group.ranks]
        self._free_count = self.capacity

    @property
    def used(self) -> int:
        """Slots that are not free: resident blocks and reservations [blocks]."""
        return self.capacity - self._free_count

    @property
    def resident(self) -> int:
        """Blocks that a later prompt may reuse [blocks]."""
        return len(self._resident)

    @property
    def pinned(self) -> int:
        """Resident blocks that are in use [blocks]."""
        return len(self._resident) - len(self._idle)

    def __contains__(self, key: BlockKey) -> bool:
        return key in self._resident

    def leading_blocks(self, keys: Sequence[BlockKey]) -> int:
        """Return how many leading *keys* are resident."""
        resident = self._resident
        for index, key in enumerate(keys):
            if key not in resident:
                return index
        return len(keys)

    def slots_of(self, keys: Iterable[BlockKey]) -> list[SlotId]:
        """Return where the resident blocks *keys* lie."""
        resident = self._resident
        return [resident[key].slot for key in keys]

    def resident_slots(self) -> Iterator[tuple[BlockKey, SlotId]]:
        """Yield every resident block and where it lies."""
        return ((key, block.slot) for key, block in self._resident.items())

    def touch(self, path: Sequence[BlockKey]) -> None:
        """Make a resident *path* (root first) the most recently used."""
        idle, resident, tick = self._idle, self._resident, self._clock.ticks
        for key in reversed(path):
            if key in idle:
                tick += 1
                resident[key].last_use = tick
                idle.move_to_end(key)
        self._clock.ticks = tick

    def pin(self, path: Sequence[BlockKey]) -> None:
        """Keep a resident *path* (root first) in memory until it is unpinned as often."""
        resident, idle = self._resident, self._idle
        for key in path:
            block = resident[key]
            if block.pins == 0:
                del idle[key]
            block.pins += 1

    def unpin(self, path: Sequence[BlockKey]) -> None:
        """Undo one `pin` of *path* (root first); what nobody pins becomes the most recently used."""
        resident, idle, tick = self._resident, self._idle, self._clock.ticks
        for key in reversed(path):
            block = resident[key]
            block.pins -= 1
            if block.pins == 0:
                tick += 1
                block.last_use = tick
                idle[key] = None
        self._clock.ticks = tick

    def has_room(self, blocks: int) -> bool:
        """Return whether *blocks* slots are free or can be freed now."""
        return blocks <= self._free_count + len(self._idle)

    def reserve(self, first_block: int, blocks: int) -> Reservation:
        """Take slots for blocks ``first_block ..`` of a prompt, evicting the least recently used.

        The caller has asked `has_room`. Raises InvariantError, changing nothing, when there is none.
        """
        if not self.has_room(blocks):
            raise InvariantError(f"worker {self._group}: no room for {counted(blocks, 'block')}")
        evicted = self._evict(blocks - self._free_count) if blocks > self._free_count else ()
        self._free_count -= blocks
        return Reservation([self._take(first_block + i) for i in range(blocks)], evicted)

    def install(self, path: Sequence[BlockKey], first_block: int, slots: Sequence[SlotId]) -> list[SlotId]:
        """Make reserved *slots* the blocks ``path[first_block:]``, pinned once.

        A block that is resident already keeps its slot and is pinned once more. Returns the slots,
        block by block, that the path now uses from *first_block* on.
        """
        placed, now = [], self._clock.now_ns
        parent = path[first_block - 1] if first_block else None
        for key, slot in zip(path[first_block:], slots, strict=False):
            block = self._resident.get(key)
            if block is None:
                self._resident[key] = ResidentBlock(slot, now, parent, 1)
                placed.append(slot)
            else:
                self.pin((key,))
                placed.append(block.slot)
            parent = key
        return placed

    def release(self, slots: Iterable[SlotId]) -> None:
        """Give back reserved slots that hold no resident block."""
        for slot in slots:
            self._free[self._place(self._rank(slot))].returned.append(slot)
            self._free_count += 1

    @classmethod
    def of_ranks(
        cls, group: CpGroup, sources: Sequence["BlockCache"]
    ) -> tuple["BlockCache", tuple[Evicted, ...]]:
        """Return the cache of *group* made of its ranks' memory, which idle *sources* hold (sec. 6.2).

        No block moves. Where two ranks hold the same block one copy stays and the other's slot is freed;
        the second value tells those. Raises InvariantError when a block is pinned.
        """
        cache = cls(group, sources[0].blocks_per_rank, sources[0]._clock)
        cache._free = [
            source._free[source._place(rank)]  # the source ends here: its list may be taken over
            for rank in group.ranks
            for source in sources
            if rank in source._group.ranks
        ]
        doubles: dict[Rank, list[BlockKey]] = {}
        for source in sources:
            for key, block in source._resident.items():
                if block.pins:
                    raise InvariantError(
                        f"worker {source._group}: block {key} is pinned in a change of geometry"
                    )
                if cache._rank(block.slot) in group.ranks:
                    cache._adopt(key, block, doubles)
        order = sorted(cache._resident.items(), key=lambda item: item[1].last_use)
        cache._idle = OrderedDict((key, None) for key, _ in order)
        cache._free_count = sum(map(len, cache._free))
        return cache, tuple(Evicted(rank, tuple(keys)) for rank, keys in sorted(doubles.items()))

    def _adopt(self, key: BlockKey, block: ResidentBlock, doubles: dict[Rank, list[BlockKey]]) -> None:
        mine = self._resident.get(key)
        if mine is None:
            self._resident[key] = block
            return
        mine.last_use = max(mine.last_use, block.last_use)
        rank = self._rank(block.slot)
        self._free[self._place(rank)].returned.append(block.slot)
        doubles.setdefault(rank, []).append(key)

    def check(self, parents: dict[BlockKey, BlockKey | None] | None = None) -> None:
        """Raise InvariantError unless slots, pins and order are consistent (and *parents* are held)."""
        self._check_slots()
        idle = {key for key, block in self._resident.items() if block.pins == 0}
        if idle != set(self._idle) or any(block.pins < 0 for block in self._resident.values()):
            raise InvariantError(f"worker {self._group}: pins and idle list disagree")
        for key in self._resident if parents else ():
            self._check_ancestor(key, (parents or {}).get(key))

    def _check_slots(self) -> None:
        """Raise InvariantError unless each slot is free once or held once; walks none that was never used."""
        never_used = [free.never_used for free in self._free]
        returned = [slot for free in self._free for slot in free.returned]
        slots = [*returned, *(block.slot for block in self._resident.values())]
        if len(returned) + sum(map(len, never_used)) != self._free_count:
            raise InvariantError(f"worker {self._group}: {counted(self._free_count, 'slot')} counted as free")
        if len({*slots}) != len(slots) or any(slot in fresh for fresh in never_used for slot in slots):
            raise InvariantError(
                f"worker {self._group}: a slot is free twice, or free and in use, or held twice"
            )

    def _check_ancestor(self, key: BlockKey, parent: BlockKey | None) -> None:
        if parent is None:
            return
        holder = self._resident.get(parent)
        if holder is None or (self._resident[key].pins > 0 and holder.pins == 0):
            raise InvariantError(f"worker {self._group}: block {key} outlives or outpins its parent")

    def _rank(self, slot: SlotId) -> Rank:
        return slot // self.blocks_per_rank

    def _place(self, rank: Rank) -> int:
        return rank - self._group.first_rank

    def delete(self, key: BlockKey, made_by_ns: Nanoseconds, children: int) -> Rank | str:
        """Delete an idle copy that has no *children* here and was made by *made_by_ns*; return its rank.

        Returns the reason when it stays, and changes nothing then.
        """
        block = self._resident.get(key)
        if block is None:
            return "not held"
        if block.pins:
            return "in use"
        if children:
            return "descendants remain"
        if block.made_ns > made_by_ns:
            return "a newer copy"
        del self._resident[key], self._idle[key]
        self.release((block.slot,))
        return self._rank(block.slot)

    def children(self) -> Counter[BlockKey | None]:
        """Return how many resident blocks come right after each block [blocks]."""
        return Counter(block.parent for block in self._resident.values())

    def parent(self, key: BlockKey) -> BlockKey | None:
        """Return the block before a resident one in its prefix; None at a root."""
        return self._resident[key].parent

    def _evict(self, blocks: int) -> tuple[Evicted, ...]:
        by_rank: dict[Rank, list[BlockKey]] = {}
        for _ in range(blocks):
            key, _none = self._idle.popitem(last=False)
            slot = self._resident.pop(key).slot
            rank = slot // self.blocks_per_rank
            self._free[rank - self._group.first_rank].returned.append(slot)
            by_rank.setdefault(rank, []).append(key)
        self._free_count += blocks
        return tuple(Evicted(rank, tuple(keys)) for rank, keys in sorted(by_rank.items()))

    def _take(self, block: int) -> SlotId:
        slot = self._free[block % self._group.degree].take()
        if slot is None:
            slot = max(self._free, key=len).take()  # the emptiest rank; the lowest of equals
        assert slot is not None, "the caller has counted the free slots"
        return slot
