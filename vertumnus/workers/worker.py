"""One worker's books: its queue, the step that runs, the hand-offs that still pin its blocks (D3, D5).

The same code serves the simulator and the live engine; nothing here knows a policy or a clock.
"""

from bisect import insort
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.orders import Prefill
from vertumnus.domain.request import Request, blocks_for, reusable_tokens
from vertumnus.domain.units import BlockKey, Epoch, JobId, Rank, RequestId, SlotId, Tokens
from vertumnus.workers.block_cache import BlockCache, Reservation

WorkerState: TypeAlias = Literal["serving", "draining", "forming", "out of service"]
"""Forming until every rank has adopted the epoch and the control plane opens the worker (sec. 6.2)."""


class Occupancy(Struct, gc=False):
    """What one request holds at a worker from the start of its step to the end of its hand-off."""

    request: Request
    attempt: int
    worker: CpGroup
    cached_blocks: int
    slots: list[SlotId]
    """Slot of every block of the prompt, as the step reads and writes them."""
    path: tuple[BlockKey, ...]
    """Blocks that are pinned, root first: the reused ones, all whole ones once the step is done."""
    private: list[SlotId]
    """Reserved slots that hold no resident block."""
    job_id: JobId | None = None
    decode_rank: Rank | None = None
    holds_blocks: bool = True
    is_handing_off: bool = False
    is_decoding: bool = False
    """Its first token was told."""
    is_cancelled: bool = False


class Queued(Struct, gc=False):
    """A request in a worker's queue."""

    order: Prefill
    request: Request
    number: int
    """Of the order among the worker's: a later one is larger, whatever the priorities."""

    def waits_for(self, numbers: Mapping[RequestId, int]) -> list[RequestId]:
        """Return whom it has to wait for in its queue, whose orders have *numbers*.

        One that its order names and that was queued again since, because its step failed, is not waited
        for: it may have been placed behind this one, and the two would wait for each other.
        """
        return [each for each in self.order.after if numbers.get(each, self.number) < self.number]


class Worker:
    """Queue, running step and block cache of one CP worker."""

    def __init__(
        self,
        group: CpGroup,
        blocks_per_rank: int,
        block_tokens: int,
        cache: BlockCache | None = None,
        epoch: Epoch = 0,
    ) -> None:
        """Make a worker with an empty cache, unless *cache* is what its ranks hold already."""
        self.group = group
        self.epoch = epoch
        self.cache = cache or BlockCache(group, blocks_per_rank)
        self.state: WorkerState = "serving"
        self.stalled = False
        self.is_told_drained = False
        self.step: JobId | None = None
        self.running: list[Occupancy] = []
        self.failed_steps = 0
        """Since the last one that went well; those of requests that had failed elsewhere do not count."""
        self.handoff_blocks = 0
        """Slots that hand-offs under way or waiting keep from being reused."""
        self.copies = 0
        """Copies under way that read from this worker or write to it."""
        self.awaited_transfers: set[int] = set()
        """Transfers to this worker that have not ended."""
        self._block_tokens = block_tokens
        self._queue: list[tuple[int, int, Queued]] = []
        self._numbers: dict[RequestId, int] = {}
        """Of each queued request's order."""
        self._orders = 0

    @property
    def in_service(self) -> bool:
        """Whether its ranks are up and belong to it, be it draining or forming."""
        return self.state != "out of service"

    @property
    def is_at_boundary(self) -> bool:
        """Whether no step runs and no hand-off or copy needs a block: the ranks' geometry may change."""
        return self.step is None and self.handoff_blocks == 0 and self.copies == 0

    @property
    def is_parked(self) -> bool:
        """Whether it was told drained: its ranks may adopt an epoch at any moment, nothing begins there."""
        return self.state == "draining" and self.is_told_drained

    @property
    def queued(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    def waiting(self) -> list[Queued]:
        """Return the queue in the order in which it would run."""
        return [queued for _, _, queued in self._queue]

    def queued_ids(self) -> list[RequestId]:
        """Return the queued requests in the order in which they would run."""
        return [queued.request.request_id for _, _, queued in self._queue]

    def enqueue(self, order: Prefill, request: Request) -> None:
        """Queue *request*; equal priorities keep the order of their orders."""
        insort(self._queue, (order.priority, self._orders, Queued(order, request, self._orders)))
        self._numbers[request.request_id] = self._orders
        self._orders += 1
        if request.block_keys:
            keys = request.block_keys
            # a touch, not a pin: what waits must not keep memory from what runs (D4)
            self.cache.touch(keys[: self.cache.leading_blocks(keys)])

    def dequeue(self, request_id: RequestId) -> bool:
        """Take a request out of the queue; return whether it was there."""
        for place, (_, _, queued) in enumerate(self._queue):
            if queued.request.request_id == request_id:
                del self._queue[place], self._numbers[request_id]
                return True
        return False

    def empty_queue(self) -> tuple[RequestId, ...]:
        """Empty the queue and return who was in it, in order."""
        returned = tuple(self.queued_ids())
        self._queue.clear()
        self._numbers.clear()
        return returned

    def take_ready(self, step_tokens: Tokens) -> tuple[list[Occupancy], list[Reservation]]:
        """Take the requests of the next step out of the queue and give them their blocks.

        The first ready request always; more while their uncached tokens fit *step_tokens* (D5). A
        request that shares a block with one that the step computes waits for the next step, where
        it reuses that block. Nothing is taken while the first ready request lacks room.
        """
        taken: list[Occupancy] = []
        places: list[int] = []
        reservations: list[Reservation] = []
        computing: set[BlockKey] = set()
        budget = step_tokens
        for place, queued in self._ready():
            if taken and not self._may_join(queued.request, computing, budget):
                continue
            occupancy, reservation = self._occupy(queued)
            if occupancy is None or reservation is None:
                break
            taken.append(occupancy)
            places.append(place)
            reservations.append(reservation)
            budget -= self._uncached(occupancy)
            computing.update(queued.request.block_keys or ())
            if budget <= 0:
                break
        for place in reversed(places):  # not before: nobody runs in one step with whom it waits for
            _, _, queued = self._queue.pop(place)
            del self._numbers[queued.request.request_id]
        return taken, reservations

    def settle(self, occupancy: Occupancy) -> tuple[Rank, ...] | None:
        """Make the prompt's whole blocks resident, pinned until `leave`.

        Returns the ranks of the blocks from ``cached_blocks`` on, None for the regular layout.
        """
        keys, first = occupancy.request.block_keys or (), occupancy.cached_blocks
        written = occupancy.slots[first:]
        placed = self.cache.install(keys, first, written)
        occupancy.private = [slot for i, slot in enumerate(written) if i >= len(placed) or placed[i] != slot]
        occupancy.path = keys
        return self._layout(first, placed)

    def leave(self, occupancy: Occupancy) -> None:
        """Unpin and give back what *occupancy* holds."""
        self.cache.unpin(occupancy.path)
        self.cache.release(occupancy.private)
        occupancy.path, occupancy.private, occupancy.holds_blocks = (), [], False

    def check(self, parents: dict[BlockKey, BlockKey | None] | None = None) -> None:
        """Raise InvariantError unless queue and cache are consistent."""
        numbers = {queued.request.request_id: queued.number for queued in self.waiting()}
        if numbers != self._numbers:
            raise InvariantError(f"worker {self.group}: queued {numbers}, numbered {self._numbers}")
        self.cache.check(parents)

    def _ready(self) -> Iterator[tuple[int, Queued]]:
        for place, (_, _, queued) in enumerate(self._queue):
            if queued.order.after_transfer in self.awaited_transfers:
                continue
            if not (queued.order.after and queued.waits_for(self._numbers)):
                yield place, queued

    def _may_join(self, request: Request, computing: set[BlockKey], budget: Tokens) -> bool:
        keys = request.block_keys or ()
        cached_blocks = self._cached_blocks(request)
        clashes = cached_blocks < len(keys) and keys[cached_blocks] in computing
        return not clashes and request.input_tokens - cached_blocks * self._block_tokens <= budget

    def _cached_blocks(self, request: Request) -> int:
        held = self.cache.leading_blocks(request.block_keys or ())
        return reusable_tokens(request.input_tokens, self._block_tokens, held) // self._block_tokens

    def _occupy(self, queued: Queued) -> tuple[Occupancy, Reservation] | tuple[None, None]:
        request = queued.request
        cached_blocks = self._cached_blocks(request)
        path = (request.block_keys or ())[:cached_blocks]
        self.cache.pin(path)
        needed = blocks_for(request.input_tokens, self._block_tokens) - cached_blocks
        if not self.cache.has_room(needed):
            self.cache.unpin(path)
            return None, None
        reservation = self.cache.reserve(cached_blocks, needed)
        slots = [*self.cache.slots_of(path), *reservation.slots]
        occupancy = Occupancy(
            request, queued.order.attempt, self.group, cached_blocks, slots, path, list(reservation.slots)
        )
        return occupancy, reservation

    def _uncached(self, occupancy: Occupancy) -> Tokens:
        return occupancy.request.input_tokens - occupancy.cached_blocks * self._block_tokens

    def _layout(self, first: int, placed: list[SlotId]) -> tuple[Rank, ...] | None:
        per_rank, group = self.cache.blocks_per_rank, self.group
        owners = tuple(slot // per_rank for slot in placed)
        regular = all(
            owner == group.first_rank + index % group.degree for index, owner in enumerate(owners, first)
        )
        return None if regular else owners
