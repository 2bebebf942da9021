"""Reclamation: copies of blocks are deleted one by one, from the leaves, unless they are needed (sec. 7.2).

The version check is the time at which a copy was made: what was made after the control plane looked is
another copy than the one that it judged, and stays.
"""

from vertumnus.domain.facts import DeletionRefused, Evicted, ReplicasDeleted
from vertumnus.domain.orders import Reclaim
from vertumnus.domain.units import BlockKey, Nanoseconds, Rank
from vertumnus.workers.block_cache import BlockCache
from vertumnus.workers.fleet_state import FleetState


class Reclaims:
    """Deletes what a Reclaim names; the memory is free at once."""

    def __init__(self, state: FleetState) -> None:
        self._state = state

    def reclaim(self, order: Reclaim, now: Nanoseconds) -> None:
        """Delete the blocks of *order* that may go; tell which went, and why each of the others stays."""
        state, worker = self._state, self._state.workers.get(order.worker)
        if worker is None or worker.state != "serving":
            reason = "no such worker" if worker is None else f"the worker is {worker.state}"
            refused = dict.fromkeys(order.keys, reason)
            gone: dict[Rank, list[BlockKey]] = {}
        else:
            gone, refused = _delete(order, worker.cache)
            state.with_room.append(worker)
        state.facts.extend(
            DeletionRefused(now, order.reclaim_id, order.worker, key, reason)
            for key, reason in refused.items()
        )
        evicted = tuple(Evicted(rank, tuple(keys)) for rank, keys in sorted(gone.items()))
        if evicted:
            state.facts.append(ReplicasDeleted(now, order.reclaim_id, order.worker, evicted))


def _delete(order: Reclaim, cache: BlockCache) -> tuple[dict[Rank, list[BlockKey]], dict[BlockKey, str]]:
    gone: dict[Rank, list[BlockKey]] = {}
    refused: dict[BlockKey, str] = {}
    children = cache.children()
    for key in order.keys:
        parent = cache.parent(key) if key in cache else None
        rank = cache.delete(key, order.made_by_ns, children[key])
        if isinstance(rank, str):
            refused[key] = rank
        else:
            children[parent] -= 1
            gone.setdefault(rank, []).append(key)
    return gone, refused
