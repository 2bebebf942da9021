"""What the console shows of a run at one instant: an immutable ClusterView of the replayed pool."""

from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import Composition, CpGroup
from vertumnus.domain.move import Move
from vertumnus.domain.units import SECOND, Blocks, Epoch, Nanoseconds, RequestId, Tokens
from vertumnus.policy.reconfig.mode import Mode
from vertumnus.policy.reconfig.transition import Stage, Transition
from vertumnus.policy.tuning import Value
from vertumnus.run.pool import Pool
from vertumnus.workers.worker import Occupancy, Worker
from vertumnus_console.acts import Act
from vertumnus_console.events import Event, events_of
from vertumnus_console.folds import Folds
from vertumnus_console.totals import Service, Totals

State: TypeAlias = Literal["idle", "prefill", "waiting", "stalled", "draining", "drained", "forming", "lost"]
"""Of a worker; waiting: for blocks that hand-offs hold, or a copy; draining: finishing what it has, for a
transition or an operator; drained: nothing is left; forming: adopting an epoch; lost: out of service."""

NOW_NS: Nanoseconds = 10 * SECOND
"""Width of the window that "now" means."""
ACTS = 50
"""Newest actions that a view has."""


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
    busy: float
    """Share of the last minute that it spent in steps."""
    held_by: str | None = None
    """The operator who drained it."""


class MoveView(NamedTuple):
    """A change of composition under way."""

    move: Move
    stage: Stage
    undrained: tuple[CpGroup, ...]
    unadopted: int
    """Ranks that have not acknowledged the new geometry."""
    ranks: int

    @property
    def progress(self) -> float:
        """How much of it is over, 0..1: half for the drain, half for the switch."""
        drained = 1.0 - len(self.undrained) / len(self.move.sources)
        adopted = 1.0 - self.unadopted / self.ranks
        return 0.5 * drained + (0.5 * adopted if self.stage is Stage.ADOPT else 0.0)


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
    just_now: Service
    """Of the requests that ended in the last ten seconds."""
    recent: Service
    """Of the requests that ended in the last minute."""
    whole: Service
    """Of all that ended so far."""
    ttft_p50: tuple[float | None, ...]
    """By slice of `series.SLICE_NS`, oldest first [s]."""
    ttft_p90: tuple[float | None, ...]
    mode: Mode
    """Who moves the composition."""
    moves: tuple[MoveView, ...]
    speed: float | None
    """Virtual seconds a second of a paced run; None for another."""
    settings: tuple[tuple[str, Value], ...]
    """What an operator can tune, by name."""
    acts: tuple[Act, ...]
    """The newest that operators did, oldest first."""
    events: tuple[Event, ...]
    """Newest first."""
    can_serve: bool
    """Whether a worker in service and a decode rank are left; else every request fails."""


def view_of(pool: Pool, folds: Folds, block_tokens: Tokens, now: Nanoseconds) -> ClusterView:
    """Return the view of *pool*, which stands between two events, at *now*."""
    totals, control = folds.totals, pool.control
    queue_of = dict(zip(control.pool.groups, control.ledger.remaining(now), strict=True))
    workers = sorted(pool.fleet.workers.values(), key=lambda worker: worker.group)
    held = {group: state.held_by for group, state in control.pool.workers.items()}
    return ClusterView(
        now_ns=now,
        composition=Composition(tuple(worker.group for worker in workers if worker.in_service)),
        workers=tuple(
            _worker(worker, queue_of.get(worker.group, 0), held.get(worker.group), folds, block_tokens, now)
            for worker in workers
        ),
        counts=_counts(pool, totals),
        arrival_rate=totals.arrival_rate(now),
        just_now=totals.recent(now, NOW_NS),
        recent=totals.recent(now),
        whole=totals.whole(),
        ttft_p50=totals.series.percentile(now, 50),
        ttft_p90=totals.series.percentile(now, 90),
        mode=control.mode(now),
        moves=tuple(map(_move, control.transitions)),
        speed=folds.acts.speed,
        settings=tuple(control.operators.settings().items()),
        acts=tuple(folds.acts.acts[-ACTS:]),
        events=events_of(folds),
        can_serve=pool.fleet.can_serve,
    )


def _move(transition: Transition) -> MoveView:
    ranks = sum(group.degree for group in transition.move.sources)
    return MoveView(
        transition.move,
        transition.stage,
        tuple(sorted(transition.undrained)),
        len(transition.unadopted),
        ranks,
    )


def _worker(
    worker: Worker,
    queue_ns: Nanoseconds,
    held_by: str | None,
    folds: Folds,
    block_tokens: Tokens,
    now: Nanoseconds,
) -> WorkerView:
    return WorkerView(
        group=worker.group,
        epoch=worker.epoch,
        state=_state(worker),
        queued=worker.queued,
        queue_ns=queue_ns,
        running=tuple(_running(occupancy, block_tokens) for occupancy in worker.running),
        blocks_used=worker.cache.used,
        blocks=worker.cache.capacity,
        hit_rate=folds.totals.hit_rate(worker.group),
        busy=folds.busy.load(worker.group, now).share,
        held_by=held_by,
    )


def _running(occupancy: Occupancy, block_tokens: Tokens) -> Running:
    request, cached = occupancy.request, occupancy.cached_blocks * block_tokens
    return Running(request.request_id, request.input_tokens - cached, cached)


def _state(worker: Worker) -> State:
    if not worker.in_service:
        return "lost"
    if worker.state == "forming":
        return "forming"
    if worker.state == "draining":
        return "drained" if worker.is_told_drained else "draining"
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
