"""The fleet's audit: GPUs, blocks, pins and hand-offs, counted anew from what the requests hold."""

from collections.abc import Collection
from typing import NamedTuple

from vertumnus.domain.cluster import covers
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.units import BlockKey
from vertumnus.domain.wording import counted
from vertumnus.workers.copies import Copy
from vertumnus.workers.fleet_state import FleetState
from vertumnus.workers.worker import Occupancy, Worker


class FleetBooks(NamedTuple):
    """The fleet's closing balance; all zero, and nothing open, when every request has ended.

    Copies between workers may outlive the last request; what they pin and reserve is no balance of requests.
    """

    open_requests: int
    pinned_blocks: int
    """By requests, be it together with a copy."""
    blocks_in_use: int
    """Slots that are not free, without those that copies have reserved."""
    blocks_held: int
    decode_slots: int


def balance(state: FleetState, copies: Collection[Copy], decode_slots: int) -> FleetBooks:
    """Return the balance over all workers, with *copies* under way and *decode_slots* in use."""
    caches = [worker.cache for worker in state.workers.values()]
    arriving = sum(len(copy.slots) for copy in copies)
    by_copies_only = sum(
        len(_copied_keys(worker, copies) - _used_keys(_here(state, worker)))
        for worker in state.workers.values()
    )
    return FleetBooks(
        open_requests=len(state.requests),
        pinned_blocks=sum(cache.pinned for cache in caches) - by_copies_only,
        blocks_in_use=sum(cache.used for cache in caches) - arriving,
        blocks_held=sum(cache.resident for cache in caches),
        decode_slots=decode_slots,
    )


def check_workers(state: FleetState, copies: Collection[Copy]) -> None:
    """Raise InvariantError unless the workers are the G ranks and the books of each balance.

    *copies* are the transfers under way.
    """
    idle = [worker.group for worker in state.workers.values() if not worker.in_service]
    serving = [worker.group for worker in state.workers.values() if worker.in_service]
    if not covers(serving, (rank for group in idle for rank in group.ranks), state.config.gpus):
        raise InvariantError("workers in service and ranks out of service are not the G ranks")
    for worker in state.workers.values():
        worker.check()
        here = _here(state, worker)
        _check_slots(worker, here, copies)
        _check_handoffs(worker, here)
        _check_pins(worker, here, copies)


def _check_slots(worker: Worker, here: list[Occupancy], copies: Collection[Copy]) -> None:
    arriving = sum(len(copy.slots) for copy in copies if copy.destination is worker)
    private = sum(len(occupancy.private) for occupancy in here)
    if worker.cache.used != worker.cache.resident + private + arriving:
        raise InvariantError(
            f"worker {worker.group}: {counted(worker.cache.used, 'slot')} used, not all accounted for"
        )


def _check_handoffs(worker: Worker, here: list[Occupancy]) -> None:
    blocks = sum(len(occupancy.slots) for occupancy in here if occupancy.is_handing_off)
    if blocks != worker.handoff_blocks:
        raise InvariantError(
            f"worker {worker.group}: hand-offs hold {counted(blocks, 'block')}, counted "
            f"{worker.handoff_blocks}"
        )


def _check_pins(worker: Worker, here: list[Occupancy], copies: Collection[Copy]) -> None:
    pinned = _used_keys(here) | _copied_keys(worker, copies)
    if len(pinned) != worker.cache.pinned:
        raise InvariantError(
            f"worker {worker.group}: {counted(worker.cache.pinned, 'block')} pinned, {len(pinned)} in use"
        )


def _here(state: FleetState, worker: Worker) -> list[Occupancy]:
    return [o for o in state.occupied.values() if o.worker == worker.group and o.holds_blocks]


def _used_keys(here: list[Occupancy]) -> set[BlockKey]:
    return {key for occupancy in here for key in occupancy.path}


def _copied_keys(worker: Worker, copies: Collection[Copy]) -> set[BlockKey]:
    return {key for copy in copies for owner, keys in copy.pinned if owner is worker for key in keys}
