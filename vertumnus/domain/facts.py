"""What happened: every fact carries ``at``, nanoseconds on the run's clock, and nothing secret.

Prompts, tokens and sampling parameters never enter a fact. Facts are told in order; ``at`` never
decreases. See docs/architecture.md for who tells which.
"""

from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.forecast import ForecastOutcome
from vertumnus.domain.request import Request
from vertumnus.domain.units import (
    BlockKey,
    Epoch,
    JobId,
    Nanoseconds,
    Rank,
    RequestId,
    Tokens,
)

Status: TypeAlias = Literal["finished", "failed", "rejected", "cancelled"]
"""How a request ended."""


class StepItem(NamedTuple):
    """One request of a step: P is settled when the step starts, whatever routing expected."""

    request_id: RequestId
    attempt: int
    """0 at first, one more for each time that the request was placed again."""
    cached_tokens: Tokens


class Evicted(NamedTuple):
    """Blocks that left one rank to make room."""

    rank: Rank
    keys: tuple[BlockKey, ...]


class Installed(NamedTuple):
    """Whole blocks ``first_block ..`` of a request's prompt, now resident at its worker."""

    request_id: RequestId
    first_block: int
    owners: tuple[Rank, ...] | None
    """The rank that keeps each block; None when block i is on rank ``first_rank + i mod C``."""


class Fact(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Base of the facts: what happened, and when."""

    at: Nanoseconds


class RequestArrived(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A client's request reached the scheduler."""

    request: Request


class RequestCancelled(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A client or an operator no longer wants the answer."""

    request_id: RequestId
    by: str


class StepStarted(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A worker began an engine step; blocks that made room for it are gone."""

    step_id: JobId
    worker: CpGroup
    epoch: Epoch
    items: tuple[StepItem, ...]
    evicted: tuple[Evicted, ...]


class StepFinished(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A step is done: its prompts' KV is in place. This is the cache-state report (sec. 7)."""

    step_id: JobId
    worker: CpGroup
    compute_ns: Nanoseconds
    """As the ranks measured it; the slowest rank counts."""
    installed: tuple[Installed, ...]


class StepFailed(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A step ended without a result; its requests follow in RequestsReturned."""

    step_id: JobId
    worker: CpGroup
    reason: str
    ends_worker: bool
    """Whether the worker is out of service from here on; else its next step may go well."""


class WorkerDrained(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A draining worker runs no step and hands nothing off: its ranks are at a boundary (sec. 6.2)."""

    worker: CpGroup


class EpochAdopted(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """One rank runs the new geometry; its worker is schedulable after the last of its ranks (sec. 8)."""

    rank: Rank
    epoch: Epoch
    worker: CpGroup
    """The group that the rank now belongs to."""


class WorkerFormed(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """Every rank of a new worker adopted its epoch; its cache index is that of its ranks' blocks."""

    worker: CpGroup
    epoch: Epoch
    evicted: tuple[Evicted, ...]
    """Second copies of blocks that two of its ranks held."""


class RequestsReturned(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """Requests that their worker will not serve; each needs a new placement or an end."""

    worker: CpGroup
    request_ids: tuple[RequestId, ...]
    reason: str
    is_failure: bool = True
    """Whether this counts as an attempt; a redirect from a draining worker does not."""
    is_final: bool = False
    """Whether no other worker could do better: a new placement would only waste a prefill."""


class TransferStarted(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """Source blocks are pinned, slots at the destination are reserved, the copy is under way (sec. 7.2)."""

    transfer_id: int
    worker: CpGroup
    """The destination."""
    evicted: tuple[Evicted, ...]


class TransferFinished(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """Every block arrived at every rank that takes part; from here on they count."""

    transfer_id: int
    worker: CpGroup
    first_block: int
    owners: tuple[Rank, ...]
    """The rank that keeps each block of the path from *first_block* on."""
    payload_bytes: int
    wire_ns: Nanoseconds


class TransferFailed(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """No block of the transfer counts; both sides are released."""

    transfer_id: int
    worker: CpGroup
    reason: str


class ReplicasDeleted(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """Blocks of a Reclaim that are gone from their worker (sec. 7.2)."""

    reclaim_id: int
    worker: CpGroup
    evicted: tuple[Evicted, ...]


class DeletionRefused(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A block of a Reclaim stays: it is in use, newer than the one judged, or not a leaf there."""

    reclaim_id: int
    worker: CpGroup
    key: BlockKey
    reason: str


class HandoffFinished(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """The decode rank holds the whole prompt's KV; the worker's blocks are unpinned."""

    request_id: RequestId
    attempt: int
    decode_rank: Rank


class HandoffFailed(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A hand-off or the decoding after it broke; RequestsReturned or RequestEnded follows."""

    request_id: RequestId
    attempt: int
    decode_rank: Rank
    reason: str


class FirstTokenEmitted(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """The decode side produced output token 1: the end of the TTFT."""

    request_id: RequestId
    attempt: int


class RequestEnded(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A request's only terminal fact."""

    request_id: RequestId
    status: Status
    output_tokens: Tokens
    """Tokens that were generated."""
    reason: str | None = None


class RankLost(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A prefill rank's process is gone; its worker is out of service."""

    rank: Rank
    incarnation: int
    reason: str


class DecodeRankLost(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A decode rank's process is gone with every sequence on it."""

    rank: Rank
    incarnation: int
    reason: str


class WorkerStalled(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """Hand-offs that wait for the decode pool pin too much of a worker: no new step there."""

    worker: CpGroup


class WorkerResumed(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A stalled worker starts steps again."""

    worker: CpGroup


Action: TypeAlias = Literal[
    "split", "merge", "auto", "manual", "off", "drain", "reopen", "copy", "reclaim", "tune", "undo", "speed"
]
"""What an operator may ask for: a move; who moves from now on, the controller, operators alone or nobody;
a worker out of routing or back; a prefix copied to a worker or deleted there; a parameter, or the last one
back; the speed of a paced run."""


class OperatorActed(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A person, or a program in a person's place, wants something changed; an Answer follows."""

    action_id: int
    who: str
    action: Action
    workers: tuple[CpGroup, ...] = ()
    """The one to split, drain or reopen, to copy to or to delete at, or the two to merge."""
    setting: str = ""
    """What to tune, named as in a config: "policy.beta"."""
    value: int | float | str | None = None
    """What to set: the parameter tuned, or the speed of a paced run; a prefix by its last block's key."""


class ForecastFinished(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """The answer to a Forecast order. It comes from outside and is an input: no replay computes it anew."""

    forecast_id: int
    outcomes: tuple[ForecastOutcome, ...]
    """Of staying, then of each move in the order's sequence."""


class ForecastFailed(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A Forecast order has no answer, and none will come."""

    forecast_id: int
    reason: str


class TimerFired(Fact, frozen=True, gc=False, array_like=True, tag=True):
    """A timer that the control plane set; windows count from ``due_ns``, not from ``at``."""

    name: str
    due_ns: Nanoseconds


InputFact: TypeAlias = (
    RequestArrived
    | RequestCancelled
    | RankLost
    | DecodeRankLost
    | OperatorActed
    | ForecastFinished
    | ForecastFailed
    | TimerFired
)
"""Told by the world through the engine."""

DerivedFact: TypeAlias = (
    StepStarted
    | StepFinished
    | StepFailed
    | WorkerDrained
    | EpochAdopted
    | WorkerFormed
    | RequestsReturned
    | TransferStarted
    | TransferFinished
    | TransferFailed
    | ReplicasDeleted
    | DeletionRefused
    | HandoffFinished
    | HandoffFailed
    | FirstTokenEmitted
    | RequestEnded
    | WorkerStalled
    | WorkerResumed
)
"""Told by the fleet about its workers."""

AnyFact: TypeAlias = InputFact | DerivedFact
