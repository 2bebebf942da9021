"""What an engine carries out for the fleet, and how it tells the outcome.

A job's id is unique in a run. An outcome that names a job the fleet no longer waits for is stale
and changes nothing. Outcomes carry ``at`` like facts: they are the engine's inputs to the log.
"""

from typing import TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import Epoch, JobId, Nanoseconds, Rank, RequestId, SlotId, Tokens


class StepWork(Struct, frozen=True, gc=False, array_like=True):
    """One request of a step and where its KV lies."""

    request_id: RequestId
    attempt: int
    input_tokens: Tokens
    cached_tokens: Tokens
    """P: the leading tokens whose KV is resident; the rest is computed and stored."""
    slots: tuple[SlotId, ...]
    """Block i of the prompt, the partial last one included, lies in ``slots[i]``."""


class Job(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Base of the jobs."""

    job_id: JobId


class StepJob(Job, frozen=True, gc=False, array_like=True, tag=True):
    """Prefill the works together at one worker; answered by StepDone or JobError.

    At either answer every rank of the worker is at a boundary, or was told lost before it.
    """

    worker: CpGroup
    epoch: Epoch
    works: tuple[StepWork, ...]


class HandoffJob(Job, frozen=True, gc=False, array_like=True, tag=True):
    """Move a prompt's KV to a decode rank and decode there.

    Answered by HandoffDone, FirstToken, DecodeDone in this order, or by JobError at any point.
    """

    request_id: RequestId
    attempt: int
    worker: CpGroup
    decode_rank: Rank
    input_tokens: Tokens
    output_tokens: Tokens
    slots: tuple[SlotId, ...]


class CopyJob(Job, frozen=True, gc=False, array_like=True, tag=True):
    """Copy block slots between prefill ranks, beside compute; answered by CopyDone or JobError."""

    worker: CpGroup
    """The destination."""
    moves: tuple[tuple[SlotId, SlotId], ...]
    """(source slot, destination slot) of each block; a destination's ranks each take their own."""
    sources: tuple[CpGroup, ...]
    """The workers that the blocks come from."""


class AdoptJob(Job, frozen=True, gc=False, array_like=True, tag=True):
    """Tell one rank its new group and epoch, behind every step before; answered by Adopted or JobError."""

    rank: Rank
    worker: CpGroup
    epoch: Epoch


class StopJob(Job, frozen=True, gc=False, array_like=True, tag=True):
    """Abandon the decoding of job *job_id*; answered by that job's DecodeDone or JobError."""

    decode_rank: Rank


class Outcome(Struct, frozen=True, gc=False, array_like=True, tag=True):
    """Base of the outcomes."""

    at: Nanoseconds
    job_id: JobId


class StepDone(Outcome, frozen=True, gc=False, array_like=True, tag=True):
    """Every rank of the worker finished the step."""

    compute_ns: Nanoseconds


class HandoffDone(Outcome, frozen=True, gc=False, array_like=True, tag=True):
    """The decode rank has the KV; the source slots may be reused."""


class FirstToken(Outcome, frozen=True, gc=False, array_like=True, tag=True):
    """The decode rank produced output token 1."""


class DecodeDone(Outcome, frozen=True, gc=False, array_like=True, tag=True):
    """The output is complete (or was stopped) after *output_tokens* tokens."""

    output_tokens: Tokens


class CopyDone(Outcome, frozen=True, gc=False, array_like=True, tag=True):
    """Every block lies in its destination slot."""

    payload_bytes: int
    wire_ns: Nanoseconds
    """From the first byte asked for to the last one there."""


class Adopted(Outcome, frozen=True, gc=False, array_like=True, tag=True):
    """The rank runs the epoch that its AdoptJob named."""


class JobError(Outcome, frozen=True, gc=False, array_like=True, tag=True):
    """The job ended without a result."""

    reason: str


AnyJob: TypeAlias = StepJob | HandoffJob | CopyJob | AdoptJob | StopJob
AnyOutcome: TypeAlias = StepDone | HandoffDone | FirstToken | DecodeDone | CopyDone | Adopted | JobError
