"""Copies of blocks between workers: source pinned, destination reserved, counted when done (sec. 7.2).

A copy is all or nothing for the index: until the engine confirms it no block of it counts, and a copy
that fails gives back everything. Blocks that the destination holds already, stranded by a split, are
not copied again.
"""

from collections.abc import Mapping

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Evicted
from vertumnus.domain.orders import Transfer
from vertumnus.domain.units import BlockKey, Rank, SlotId
from vertumnus.workers.worker import Worker


class Copy(Struct):
    """One transfer under way."""

    order: Transfer
    destination: Worker
    first_block: int
    """First block of the path that the destination cannot reuse yet."""
    end_block: int
    """One past the last block of the copy."""
    slots: dict[int, SlotId]
    """Reserved destination slot of each block that travels."""
    sources: tuple[CpGroup, ...]
    """The workers that the blocks come from."""
    moves: tuple[tuple[SlotId, SlotId], ...]
    evicted: tuple[Evicted, ...]
    pinned: list[tuple[Worker, tuple[BlockKey, ...]]]
    """What to unpin at each worker when the copy ends."""


def begin_copy(order: Transfer, destination: Worker, worker_of_rank: Mapping[Rank, Worker]) -> Copy | str:
    """Pin, reserve and return the copy that *order* asks for, or say why there is none and change nothing."""
    first = destination.cache.leading_blocks(order.path)
    if destination.state != "serving":
        return f"worker {destination.group} is {destination.state}"
    if first < order.first_block:
        return "the blocks before it are gone"
    sources = _sources(order, first, destination, worker_of_rank)
    travelling = [block for block, source in enumerate(sources, first) if source is not None]
    if not travelling:
        return "no block to copy is left at its source"
    path = order.path[: first + len(sources)]
    senders = list(dict.fromkeys(source for source in sources if source is not None))
    pinned = _pin(path, [destination, *senders])
    if not destination.cache.has_room(len(travelling)):
        _unpin(pinned)
        return "no room at the destination"
    reservations = {block: destination.cache.reserve(block, 1) for block in travelling}
    slots = {block: reservation.slots[0] for block, reservation in reservations.items()}
    moves = tuple(
        (source.cache.slots_of((path[block],))[0], slots[block])
        for block, source in enumerate(sources, first)
        if source is not None
    )
    evicted = tuple(gone for reservation in reservations.values() for gone in reservation.evicted)
    groups = tuple(worker.group for worker in senders)
    return Copy(order, destination, first, len(path), slots, groups, moves, evicted, pinned)


def finish_copy(copy: Copy) -> tuple[Rank, ...]:
    """Install the blocks of a confirmed *copy*, release both sides, return each block's rank."""
    cache, path = copy.destination.cache, copy.order.path
    for block, slot in copy.slots.items():
        placed = cache.install(path[: block + 1], block, (slot,))
        if placed != [slot]:  # a step computed the block meanwhile and keeps its own
            cache.release((slot,))
    cache.unpin(tuple(path[block] for block in sorted(copy.slots)))
    _unpin(copy.pinned)
    cache.touch(path[: copy.end_block])  # what came lies between what was here: one use, leaf to root
    here = path[copy.first_block : copy.end_block]
    return tuple(slot // cache.blocks_per_rank for slot in cache.slots_of(here))


def abandon_copy(copy: Copy) -> None:
    """Release both sides of a *copy* that came to nothing."""
    copy.destination.cache.release(copy.slots.values())
    _unpin(copy.pinned)


def _sources(
    order: Transfer, first: int, destination: Worker, worker_of_rank: Mapping[Rank, Worker]
) -> list[Worker | None]:
    """Return each block's source from *first* on, None for one that is here, while there is one."""
    sources: list[Worker | None] = []
    for block in range(first, len(order.path)):
        key = order.path[block]
        worker = worker_of_rank[order.sources[block - order.first_block]]
        if key in destination.cache:
            sources.append(None)
        elif worker.in_service and not worker.is_parked and key in worker.cache:
            sources.append(worker)
        else:
            break
    return sources


def _pin(path: tuple[BlockKey, ...], workers: list[Worker]) -> list[tuple[Worker, tuple[BlockKey, ...]]]:
    """Pin what each worker holds of *path*: a pinned block's ancestors are pinned too."""
    pinned = [(worker, tuple(key for key in path if key in worker.cache)) for worker in workers]
    for worker, keys in pinned:
        worker.cache.pin(keys)
        worker.copies += 1
    return pinned


def _unpin(pinned: list[tuple[Worker, tuple[BlockKey, ...]]]) -> None:
    for worker, keys in pinned:
        worker.cache.unpin(keys)
        worker.copies -= 1
