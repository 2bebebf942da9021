"""The global prefix index: which ranks hold which block, folded to workers on demand (sec. 7.1, D1).

A node is one cache block; the path from a root to it is the prefix. Residency is kept per rank, as a
bitmask, so a split or merge touches no node: a worker holds a node when one of its ranks does, and
holds a prefix when it holds every node of its path. Nodes know parents by key only.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError, ProtocolError
from vertumnus.domain.units import BlockKey, Blocks, Rank


class Node(Struct, gc=False):
    """One block of the trie."""

    parent: BlockKey | None
    depth: Blocks
    """Blocks of the prefix that ends here, this one included."""
    owners: int = 0
    """The ranks that hold the block, as a bitmask."""
    children: int = 0
    """Nodes whose parent this is."""
    made: int = 0
    """The scan before which its last copy was made."""


class Match(NamedTuple):
    """How far a prompt's blocks are known, and how far each worker holds them."""

    held: list[Blocks]
    """Leading blocks at each worker, in the index's order of workers: ReusedPath if routed there."""
    known: Blocks
    """Leading blocks with a node, wherever they are: MatchedPath (sec. 7.1)."""


class PrefixIndex:
    """Nodes by key, and the fold from owning ranks to holding workers."""

    def __init__(self, workers: Sequence[CpGroup]) -> None:
        self._nodes: dict[BlockKey, Node] = {}
        self._owned: dict[int, int] = {}
        """Nodes by their owners, which are some: kept up with every change, so that a scan need not count."""
        self._replicated: dict[BlockKey, Node] = {}
        """The nodes that two or more ranks own."""
        self.scan = 0
        """Scans so far, as `Node.made` counts them."""
        self.recompose(workers)
        self._is_original = True

    def recompose(self, workers: Sequence[CpGroup]) -> None:
        """Fold owners to *workers* from now on; no node is touched (D1)."""
        self._is_original = False
        self._workers = tuple(workers)
        self._holder_of_rank = {
            rank: 1 << place for place, worker in enumerate(self._workers) for rank in worker.ranks
        }
        self._holders_of: dict[int, int] = {0: 0}
        self._degree_mask: dict[int, int] = {}
        self._replicas_of: dict[int, tuple[tuple[int, int], ...]] = {}
        for place, worker in enumerate(self._workers):
            self._degree_mask[worker.degree] = self._degree_mask.get(worker.degree, 0) | 1 << place

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, key: BlockKey) -> Node | None:
        """Return the node of *key*, or None."""
        return self._nodes.get(key)

    def has_children(self, key: BlockKey) -> bool:
        """Return whether a known block is the parent of another."""
        return self._nodes[key].children > 0

    def match(self, keys: Sequence[BlockKey]) -> Match:
        """Walk a prompt's blocks from the root.

        The set of workers that hold everything so far only shrinks along the path, so each worker's
        count is settled once, where it drops out.
        """
        fold = self._holders_of.get
        held = [0] * len(self._workers)
        holding = (1 << len(held)) - 1
        known = 0
        for node in map(self._nodes.get, keys):
            if node is None:
                break
            if holding:
                owners = node.owners
                holders = fold(owners)
                if holders is None:
                    holders = self._fold(owners)
                still = holding & holders
                if still != holding:
                    if known:  # else its count is the 0 that it starts with
                        _settle(held, holding ^ still, known)
                    holding = still
            known += 1
        if known:
            _settle(held, holding, known)
        return Match(held, known)

    def owners(self, keys: Sequence[BlockKey], mine: int, reach: int) -> list[Rank]:
        """Return a rank that has each leading key: one of *mine*, else of *reach* (both bitmasks).

        Ends before the first key that neither has.
        """
        ranks: list[Rank] = []
        for key in keys:
            node = self._nodes.get(key)
            owners = 0 if node is None else (node.owners & mine) or (node.owners & reach)
            if not owners:
                break
            ranks.append((owners & -owners).bit_length() - 1)
        return ranks

    def replica_count(self, key: BlockKey, degree: int) -> int:
        """Return ReplicaCount(z, C): degree-C workers that hold the block [workers] (sec. 7.1)."""
        node = self._nodes.get(key)
        return 0 if node is None else self.replicas_at(degree, node.owners)

    def replicas_at(self, degree: int, owners: int) -> int:
        """Return how many workers of *degree* hold what *owners* (a bitmask) hold [workers]."""
        holders = self._holders_of.get(owners)
        if holders is None:
            holders = self._fold(owners)
        return (holders & self._degree_mask.get(degree, 0)).bit_count()

    def install(self, path: Sequence[BlockKey], first_block: Blocks, owners: Iterable[Rank]) -> None:
        """Note that ``path[first_block:]`` is now held by *owners*, block by block."""
        nodes, scan, fold, holder_of = self._nodes, self.scan, self._holders_of, self._holder_of_rank.get
        parent = path[first_block - 1] if first_block else None
        depth = first_block
        for key, owner in zip(path[first_block:], owners, strict=True):
            depth += 1
            node = nodes.get(key)
            if node is None:
                node = self._add(key, parent, depth)
            owned_by = node.owners | 1 << owner
            if owned_by not in fold:  # matching need not fold from nothing what is one rank more
                fold[owned_by] = self._fold(node.owners) | holder_of(owner, 0)
            self._own(key, node, owned_by)
            node.made = scan
            parent = key

    def evict(self, rank: Rank, keys: Iterable[BlockKey]) -> list[BlockKey]:
        """Note that *rank* no longer holds *keys*; return those that nobody holds any more."""
        orphaned = []
        for key in keys:
            node = self._nodes[key]
            self._own(key, node, node.owners & ~(1 << rank))
            if node.owners == 0:
                orphaned.append(key)
        return orphaned

    def forget(self, ranks: int) -> list[BlockKey]:
        """Note that what the *ranks* (a bitmask) hold is lost; return what nobody holds any more."""
        orphaned = []
        for key, node in self._nodes.items():
            if node.owners & ranks:
                self._own(key, node, node.owners & ~ranks)
                if node.owners == 0:
                    orphaned.append(key)
        return orphaned

    def drop(self, key: BlockKey) -> None:
        """Remove a node that has neither holders nor children. Raises ProtocolError if it has."""
        node = self._nodes[key]
        if node.owners or node.children:
            raise ProtocolError(f"block {key} is held or has children in the index")
        del self._nodes[key]
        if node.parent is not None:
            self._nodes[node.parent].children -= 1

    def path(self, key: BlockKey) -> tuple[BlockKey, ...]:
        """Return the prefix that ends at a known block, root first."""
        path, nodes = [key], self._nodes
        while (parent := nodes[path[-1]].parent) is not None:
            path.append(parent)
        return tuple(reversed(path))

    def holders(self, key: BlockKey) -> int:
        """Return the workers that hold the block, as a bitmask of places; 0 for an unknown one."""
        node = self._nodes.get(key)
        return 0 if node is None else self._fold(node.owners)

    def replicated(self) -> Mapping[BlockKey, Node]:
        """Return the blocks that two or more ranks hold: a live view, in the order in which they came."""
        return self._replicated

    def replicas(self, owners: int) -> tuple[tuple[int, int], ...]:
        """Return (degree, workers of the degree that hold what *owners* hold) for each degree that does."""
        replicas = self._replicas_of.get(owners)
        if replicas is None:
            holders = self._fold(owners)
            counts = [(degree, (holders & mask).bit_count()) for degree, mask in self._degree_mask.items()]
            replicas = self._replicas_of[owners] = tuple(item for item in counts if item[1])
        return replicas

    def ranks_with_children(
        self, keys: Container[BlockKey | None], aside: Container[BlockKey] = ()
    ) -> dict[BlockKey | None, int]:
        """Return the ranks that hold a child of each of *keys* that has one, those in *aside* left out.

        Ranks are a bitmask.
        """
        ranks: dict[BlockKey | None, int] = {}
        for key, node in self._nodes.items():
            if node.parent in keys and node.owners and key not in aside:
                ranks[node.parent] = ranks.get(node.parent, 0) | node.owners
        return ranks

    def copies(self) -> dict[int, Blocks]:
        """Return the number of copies that the workers of each degree hold together [blocks]."""
        copies = dict.fromkeys(self._degree_mask, 0)
        for owners, count in self._owned.items():
            for degree, replicas in self.replicas(owners):
                copies[degree] += count * replicas
        return copies

    def owned(self) -> Iterator[tuple[BlockKey, int]]:
        """Yield each block that somebody holds with the ranks that do, a bitmask, in the order of coming."""
        return ((key, node.owners) for key, node in self._nodes.items() if node.owners)

    def keys_on(self, ranks: int) -> Iterator[BlockKey]:
        """Yield the blocks that one of *ranks* (a bitmask) holds."""
        return (key for key, node in self._nodes.items() if node.owners & ranks)

    def count_lacking(self, ranks: int, others: int) -> Blocks:
        """Return how many blocks *others* (a bitmask) hold and none of *ranks* does [blocks]."""
        return sum(n for owners, n in self._owned.items() if owners & others and not owners & ranks)

    def check(self) -> None:
        """Raise InvariantError unless depths and children are right and holders hold all ancestors.

        The last is not asked once the composition has changed: a split strands blocks.
        """
        children = dict.fromkeys(self._nodes, 0)
        for key, node in self._nodes.items():
            if node.parent is None:
                continue
            parent = self._nodes.get(node.parent)
            if parent is None or parent.depth != node.depth - 1:
                raise InvariantError(f"block {key}: its parent {node.parent} is not the node before it")
            if self._is_original and self._fold(node.owners) & ~self._fold(parent.owners):
                raise InvariantError(f"block {key}: held where its parent {node.parent} is not")
            children[node.parent] += 1
        if any(children[key] != node.children for key, node in self._nodes.items()):
            raise InvariantError("prefix index: children miscounted")
        owned = Counter(node.owners for node in self._nodes.values() if node.owners)
        several = {key for key, node in self._nodes.items() if node.owners.bit_count() > 1}
        if owned != self._owned or several != self._replicated.keys():
            raise InvariantError("prefix index: owners miscounted")

    def _own(self, key: BlockKey, node: Node, owners: int) -> None:
        """Let *owners*, a bitmask, be the ranks that hold a node."""
        before, owned = node.owners, self._owned
        if owners == before:
            return
        node.owners = owners
        if before:
            owned[before] -= 1
            if not owned[before]:
                self._forget_mask(before)
        if owners:
            owned[owners] = owned.get(owners, 0) + 1
        if owners & (owners - 1):
            self._replicated[key] = node
        elif before & (before - 1):
            del self._replicated[key]

    def _forget_mask(self, owners: int) -> None:
        """Drop all that is kept for a set of owners that no node has any more: runs see ever new ones."""
        del self._owned[owners]
        self._holders_of.pop(owners, None)
        self._replicas_of.pop(owners, None)

    def _fold(self, owners: int) -> int:
        holders = self._holders_of.get(owners)
        if holders is None:
            holders, left, holder_of = 0, owners, self._holder_of_rank.get
            while left:
                rank = left.bit_length() - 1
                holders |= holder_of(rank, 0)
                left ^= 1 << rank
            self._holders_of[owners] = holders
        return holders

    def _add(self, key: BlockKey, parent: BlockKey | None, depth: Blocks) -> Node:
        node = self._nodes[key] = Node(parent, depth)
        if parent is not None:
            self._nodes[parent].children += 1
        return node


def _settle(held: list[Blocks], places: int, blocks: Blocks) -> None:
    while places:
        place = places.bit_length() - 1
        held[place] = blocks
        places ^= 1 << place
