"""What the console shows of a run at one instant: an immutable ClusterView of the replayed pool."""

from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import Composition, CpGroup
from vertumnus.domain.units import Blocks, Epoch, Nanoseconds, RequestId, Tokens
from vertumnus.records.faults import Fault
from vertumnus.run.pool import Pool
from vertumnus.workers.worker import Occupancy, Worker
from vertumnus_console.totals import Service, Totals

State: TypeAlias = Literal["idle", "prefill", "waiting", "stalled", "lost"]
"""Of a worker; waiting: for blocks that hand-offs hold; lost: out of service."""


class Running(NamedTuple):
    """A request of the step that a worker runs."""

    request_id: RequestId
    uncached_tokens: Tokens
    """R."""
    cached_tokens: Tokens
    """P."""


class WorkerView(Struct, frozen=True):
    """One worker."""

    group: CpGroup
    epoch: Epoch
    state: State
    queued: int
    queue_ns: Nanoseconds
    """The ledger's predicted work, queued and running, less what the running step has used."""
    running: tuple[Running, ...]
    blocks_used: Blocks
    blocks: Blocks
    """Capacity."""
    hit_rate: float | None
    """Of the requests that have ended; None while there are none."""


class Counts(Struct, frozen=True):
    """Requests by where they are; ``arrived`` is the sum of the others."""

    arrived: int
    queued: int
    prefill: int
    decode: int
    """Prefilled: in hand-off, waiting for a decode rank, or decoding."""
    finished: int
    failed: int
    rejected: int
    cancelled: int


class ClusterView(Struct, frozen=True):
    """The pool and its requests at one instant."""

    now_ns: Nanoseconds
    composition: Composition
    """The workers in service."""
    workers: tuple[WorkerView, ...]
    """All of them, by first rank."""
    counts: Counts
    arrival_rate: float | None
    """Of the last minute [req/s]."""
    recent: Service
    """Of the requests that ended in the last minute."""
    whole: Service
    """Of all that ended so far."""
    events: tuple[Fault, ...]
    """Newest first."""


def view_of(pool: Pool, totals: Totals, block_tokens: Tokens, now: Nanoseconds) -> ClusterView:
    """Return the view of *pool*, which stands between two events, at *now*."""
    queue_of = dict(zip(pool.control.pool.groups, pool.control.ledger.remaining(now), strict=True))
    workers = sorted(pool.fleet.workers.values(), key=lambda worker: worker.group)
    return ClusterView(
        now_ns=now,
        composition=Composition(tuple(worker.group for worker in workers if worker.in_service)),
        workers=tuple(
            _worker(worker, queue_of.get(worker.group, 0), totals, block_tokens) for worker in workers
        ),
        counts=_counts(pool, totals),
        arrival_rate=totals.arrival_rate(now),
        recent=totals.recent(now),
        whole=totals.whole(),
        events=totals.events(),
    )


def _worker(worker: Worker, queue_ns: Nanoseconds, totals: Totals, block_tokens: Tokens) -> WorkerView:
    return WorkerView(
        group=worker.group,
        epoch=worker.epoch,
        state=_state(worker),
        queued=worker.queued,
        queue_ns=queue_ns,
        running=tuple(_running(occupancy, block_tokens) for occupancy in worker.running),
        blocks_used=worker.cache.used,
        blocks=worker.cache.capacity,
        hit_rate=totals.hit_rate(worker.group),
    )


def _running(occupancy: Occupancy, block_tokens: Tokens) -> Running:
    request, cached = occupancy.request, occupancy.cached_blocks * block_tokens
    return Running(request.request_id, request.input_tokens - cached, cached)


def _state(worker: Worker) -> State:
    if not worker.in_service:
        return "lost"
    if worker.step is not None:
        return "prefill"
    if worker.stalled:
        return "stalled"
    return "waiting" if worker.queued else "idle"


def _counts(pool: Pool, totals: Totals) -> Counts:
    workers = pool.fleet.workers.values()
    queued = sum(worker.queued for worker in workers)
    prefill = sum(len(worker.running) for worker in workers)
    return Counts(
        arrived=totals.arrived,
        queued=queued,
        prefill=prefill,
        decode=pool.fleet.open_requests - queued - prefill,
        finished=totals.ended["finished"],
        failed=totals.ended["failed"],
        rejected=totals.ended["rejected"],
        cancelled=totals.ended["cancelled"],
    )
