"""Copies and deletions of one prefix that an operator asks for (sec. 7.2).

They go the manager's ways: a copy is a Transfer from its one book, a deletion a Reclaim by exact keys that
the worker may refuse. Here is what can be asked for now, and why not.
"""

from collections.abc import Mapping
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.orders import Reclaim, Transfer, TransferReason
from vertumnus.domain.units import BlockKey, Blocks, Nanoseconds, Rank
from vertumnus.domain.wording import counted
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.prefix.reclamation import Reclaimer
from vertumnus.policy.prefix.transfers import TransferBook


class CopyPlan(NamedTuple):
    """A copy that can be ordered now."""

    path: tuple[BlockKey, ...]
    """The prefix, root first, as far as its source holds it."""
    first_block: Blocks
    """Blocks of it that the destination holds already."""
    source: CpGroup
    ranks: tuple[Rank, ...]
    """A rank that holds each block from *first_block* on."""
    ready_ns: Nanoseconds
    """When it would be over, by the links' reservations."""

    @property
    def blocks(self) -> Blocks:
        """Blocks to copy."""
        return len(self.path) - self.first_block


class PrefixHand:
    """What operators do to single prefixes; it changes nothing before it is known to be legal."""

    def __init__(
        self, pool: PoolState, index: PrefixIndex, transfers: TransferBook, reclaimer: Reclaimer
    ) -> None:
        self._pool = pool
        self._index = index
        self._transfers = transfers
        self._reclaimer = reclaimer

    def copy(self, key: BlockKey, destination: CpGroup, now: Nanoseconds) -> Transfer:
        """Return the order that copies to *destination* the prefix that ends with *key*.

        Raises ConfigError, as `copy_plan` does.
        """
        plan = self.copy_plan(key, destination, now)
        reason: TransferReason = "intra" if plan.source.degree == destination.degree else "inter"
        return self._transfers.begin(
            plan.path, plan.first_block, plan.ranks, destination, reason, "operator", None, now
        )

    def reclaim(self, key: BlockKey, worker: CpGroup, now: Nanoseconds) -> Reclaim:
        """Return the order that deletes at *worker* what `reclaimable` names; raises ConfigError."""
        return self._reclaimer.order(worker, self.reclaimable(key, worker), "operator", now)

    def copy_plan(self, key: BlockKey, destination: CpGroup, now: Nanoseconds) -> CopyPlan:
        """Return the copy of the prefix that ends with *key* to *destination*.

        Raises ConfigError when the prefix is not known, nobody has more of it, or the worker cannot take it.
        """
        path, state = self._path("copy", key), self._serving("copy", destination)
        held = self._index.match(path).held
        first = held[state.place]
        if first == len(path):
            raise ConfigError(f"copy: {destination} holds all of it")
        if state.capacity_blocks < len(path):
            raise ConfigError(
                f"copy: {destination} has {counted(state.capacity_blocks, 'block')}, it takes {len(path)}"
            )
        if self._transfers.bringing(destination, path[first]) is not None:
            raise ConfigError(f"copy: it is on its way to {destination} already")
        source = self._source(held, first, destination)
        copied = path[: held[source.place]]
        ranks = tuple(self._index.owners(copied[first:], destination.mask, source.group.mask))
        return CopyPlan(
            copied, first, source.group, ranks, self._ready(source.group, destination, ranks, now)
        )

    def reclaimable(self, key: BlockKey, worker: CpGroup) -> tuple[BlockKey, ...]:
        """Return the blocks of the prefix that ends with *key* that can go at *worker*, leaf first.

        They end where another prefix of that worker begins, or where no other worker has a copy. Raises
        ConfigError when there are none.
        """
        path, state = self._path("reclaim", key), self._serving("reclaim", worker)
        keys = self._reclaimable(path, state, self._ranks_with_others(path))
        if isinstance(keys, str):
            raise ConfigError(f"reclaim: {keys}")
        return keys

    def reclaimable_everywhere(self, key: BlockKey) -> dict[CpGroup, tuple[BlockKey, ...] | str]:
        """Return for each worker that serves and holds *key* what `reclaimable` does, or why nothing can go.

        Raises ConfigError when the prefix is not known.
        """
        path, holders = self._path("reclaim", key), self._index.holders(key)
        others = self._ranks_with_others(path)
        return {
            state.group: self._reclaimable(path, state, others)
            for state in self._pool.workers.values()
            if state.is_serving and holders >> state.place & 1
        }

    def _ranks_with_others(self, path: tuple[BlockKey, ...]) -> Mapping[BlockKey | None, int]:
        """Return the ranks that hold another continuation of each block of *path* that has one."""
        return self._index.ranks_with_children(set(path), aside=set(path))

    def _reclaimable(
        self, path: tuple[BlockKey, ...], state: WorkerState, others: Mapping[BlockKey | None, int]
    ) -> tuple[BlockKey, ...] | str:
        keys: list[BlockKey] = []
        for block in reversed(path):
            why_not = self._why_kept(block, state, others.get(block, 0))
            if why_not:
                return tuple(keys) or why_not
            keys.append(block)
        return tuple(keys)

    def _why_kept(self, block: BlockKey, state: WorkerState, with_children: int) -> str:
        """Return why *block* stays at a worker; "" when it may go."""
        holders = self._index.holders(block)
        if not holders >> state.place & 1:
            return f"{state.group} does not hold it"
        if with_children & state.group.mask:
            return f"longer prefixes at {state.group} build on it"
        if holders.bit_count() < 2:
            return "it is the last copy; eviction takes it when its room is needed"
        return ""

    def _source(self, held: list[Blocks], first: Blocks, destination: CpGroup) -> WorkerState:
        """Return who holds most of it, then one of the same degree, then the lowest rank."""
        states = [
            each for each in self._pool.workers.values() if each.is_serving and held[each.place] > first
        ]
        if not states:
            raise ConfigError(f"copy: no other worker that serves holds more of it than {destination}")
        return min(
            states,
            key=lambda each: (-held[each.place], each.group.degree != destination.degree, each.group),
        )

    def _ready(
        self, source: CpGroup, destination: CpGroup, ranks: tuple[Rank, ...], now: Nanoseconds
    ) -> Nanoseconds:
        links = self._transfers.links
        travelling = sum(rank not in destination.ranks for rank in ranks)
        return max(now, links.out_free(source), links.in_free(destination)) + links.copy_ns(travelling)

    def _path(self, action: str, key: BlockKey) -> tuple[BlockKey, ...]:
        if self._index.node(key) is None:
            raise ConfigError(f"{action}: nobody holds prefix {key} any more")
        return self._index.path(key)

    def _serving(self, action: str, worker: CpGroup) -> WorkerState:
        state = self._pool.workers.get(worker)
        if state is None:
            raise ConfigError(f"{action}: there is no worker {worker}")
        if not state.is_serving:
            raise ConfigError(f"{action}: {worker} does not serve: {state.out_of_service or state.draining}")
        return state
