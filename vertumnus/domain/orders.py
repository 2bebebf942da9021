"""What shall happen: the control plane's answers to facts, carried out by the fleet and the loop."""

from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.move import Move
from vertumnus.domain.units import BlockKey, Blocks, Epoch, Nanoseconds, Rank, RequestId, Tokens

TransferReason: TypeAlias = Literal["reconcile", "pull", "inter", "intra"]
"""Why blocks are copied: to make a prefix whole again after a split (sec. 6.2), for a request that is
placed where they are missing, or as a replica at another degree or at the same one (sec. 7.2)."""

Origin: TypeAlias = Literal["manager", "prefetch", "pull", "reconcile", "operator"]
"""Who has blocks copied or deleted: a scan of the prefix manager, or its prefetch for a request that queues
(sec. 7.2); a request placed where blocks are missing, or where a split left half of them; a person."""


class Order(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Base of the orders."""


class Prefill(Order, frozen=True, gc=False, array_like=True, tag=True):
    """Queue a request at a worker (sec. 5.3)."""

    request_id: RequestId
    attempt: int
    worker: CpGroup
    priority: int
    """Place in the worker's queue: lower runs first, equal runs in order of this order."""
    after: tuple[RequestId, ...]
    """Requests queued there before this one that must have ended their prefill, in any way, before it starts.
    One that is queued there again, after its step failed, counts no more."""
    service_ns: Nanoseconds
    """s: predicted prefill time at this worker; reserved until the step ends [ns]."""
    expected_cached: Tokens
    """P as routing saw it; the step settles the truth."""
    after_transfer: int | None = None
    """A transfer to the worker that must have ended, in any way, before this one starts."""


class Transfer(Order, frozen=True, gc=False, array_like=True, tag=True):
    """Copy a prefix's missing blocks to a worker (sec. 6.2, 7.2)."""

    transfer_id: int
    path: tuple[BlockKey, ...]
    """The prefix, root first; its first blocks are at the destination already."""
    first_block: int
    """Number of the first block to copy; the path's rest is copied."""
    sources: tuple[Rank, ...]
    """A rank that holds each block from *first_block* on."""
    destination: CpGroup
    reason: TransferReason
    for_request: RequestId | None
    """The request that waits for it; None for a replica or a prefetch, which nobody waits for."""
    origin: Origin | None = None
    """Who wanted it; None in logs from before that was noted."""


class Reclaim(Order, frozen=True, gc=False, array_like=True, tag=True):
    """Delete a worker's copies of blocks that others hold, too (sec. 7.2)."""

    reclaim_id: int
    worker: CpGroup
    keys: tuple[BlockKey, ...]
    """Leaves first: a block is deleted only when none of its descendants is left at the worker."""
    made_by_ns: Nanoseconds
    """Copies made later are others than those that were judged, and stay [ns of the run's clock]."""
    origin: Origin | None = None
    """Who wanted it; None in logs from before that was noted."""


class Cancel(Order, frozen=True, gc=False, array_like=True, tag=True):
    """Stop a request wherever it is."""

    request_id: RequestId


class Reject(Order, frozen=True, gc=False, array_like=True, tag=True):
    """End a request that will not be served."""

    request_id: RequestId
    status: Literal["rejected", "failed"]
    """``failed`` when it had been placed before."""
    reason: str
    retry_after_s: float | None = None


class Drain(Order, frozen=True, gc=False, array_like=True, tag=True):
    """Start no new step at a worker and return its queue; told finished by WorkerDrained (sec. 6.2)."""

    worker: CpGroup


class Reopen(Order, frozen=True, gc=False, array_like=True, tag=True):
    """Let a worker start steps: one that was draining, or one that was just formed."""

    worker: CpGroup


class AdoptEpoch(Order, frozen=True, gc=False, array_like=True, tag=True):
    """Send the versioned control record to every rank of the drained workers' successors (sec. 8)."""

    workers: tuple[CpGroup, ...]
    epoch: Epoch


class CloseTransition(Order, frozen=True, gc=False, array_like=True, tag=True):
    """A change of composition is over; when it failed closed, *workers* stay out of service."""

    epoch: Epoch
    kind: Literal["split", "merge"]
    sources: tuple[CpGroup, ...]
    targets: tuple[CpGroup, ...]
    outcome: Literal["committed", "reopened", "failed"]
    reason: str


class NoteWindow(Order, frozen=True, gc=False, array_like=True, tag=True):
    """What the controller made of one observation window, for log and console (sec. 6.1-6.2)."""

    index: int
    start_ns: Nanoseconds
    end_ns: Nanoseconds
    requests: int
    demand_ns: Nanoseconds
    """D(k): predicted work that arrived, at the degrees that it was routed to."""
    capacity_ns: Nanoseconds | None
    """kappa * H over the workers in service; None where kappa is not known."""
    long_fraction: float | None
    """Share of long requests; None when nothing arrived."""
    signal: Literal["split", "merge"] | None
    """What this window alone asks for."""
    persistence: int
    """Windows in a row that have asked for it."""
    action: str
    """What was begun, what `advise` would have begun, or nothing: "split 0x4 -> 0x2 + 2x2", ""."""
    reason: str
    forecast_id: int | None = None
    """The forecast that was asked for at the window's end; None without one."""


class Forecast(Order, frozen=True, gc=False, array_like=True, tag=True):
    """Ask what staying and each of *moves* would lead to; answered by ForecastFinished or ForecastFailed."""

    forecast_id: int
    moves: tuple[Move, ...]
    """Candidates; staying is always looked at too, and first."""
    span_ns: Nanoseconds
    """The arrivals of this long before now stand for those after it."""
    repeats: int = 1
    """They come so often then, one after the other."""
    load: float = 1.0
    """They come so many times as fast."""
    is_kept: bool = False
    """Whether its hindsight will be asked for."""
    hindsight_of: int | None = None
    """An earlier forecast to make again, from its own moment, with the arrivals that have come since."""


class NoteDrift(Order, frozen=True, gc=False, array_like=True, tag=True):
    """Prefills of a degree take other times than the profile says, or no longer do; for log and console."""

    degree: int
    ratio: float
    """Median of observed / predicted step times, without correction."""
    samples: int
    is_raised: bool
    """Whether the median left the bounds of the alarm, or came back."""


class DegreeHeat(NamedTuple):
    """The trie at one degree, as of a scan."""

    degree: int
    copies: Blocks
    """Block copies that the degree's workers hold together."""
    access: float
    """Sum of access[z, C] over all blocks."""
    missed_ns: Nanoseconds
    """Sum of missed[z, C] over all blocks."""


class HotBlock(NamedTuple):
    """A block among the most wanted of a degree."""

    degree: int
    key: BlockKey
    depth: Blocks
    """Blocks of the prefix that ends with it."""
    replicas: int
    """Workers of the degree that hold it."""
    access: float
    missed_ns: Nanoseconds


class NoteScan(Order, frozen=True, gc=False, array_like=True, tag=True):
    """What a scan saw of the trie and chose to do, for log, tables and console (sec. 7.2)."""

    scan: int
    """Scans before this one."""
    blocks: Blocks
    """Blocks that the trie knows, held or not."""
    degrees: tuple[DegreeHeat, ...]
    hottest: tuple[HotBlock, ...]
    """Of each degree the most accessed and the most missed; only blocks with much demand."""
    inter: int
    """First replicas that were chosen, and so on for the next two."""
    intra: int
    reclaimed_blocks: Blocks
    unfinished: int
    """Replications that the scan before had chosen and that were not complete."""


class Answer(Order, frozen=True, gc=False, array_like=True, tag=True):
    """What became of an operator's wish."""

    action_id: int
    accepted: bool
    reason: str


class SetTimer(Order, frozen=True, gc=False, array_like=True, tag=True):
    """Ask for TimerFired(name, at_ns) at *at_ns*."""

    name: str
    at_ns: Nanoseconds


AnyOrder: TypeAlias = (
    Prefill
    | Transfer
    | Reclaim
    | Cancel
    | Reject
    | Drain
    | Reopen
    | AdoptEpoch
    | CloseTransition
    | NoteWindow
    | Forecast
    | NoteDrift
    | NoteScan
    | Answer
    | SetTimer
)
