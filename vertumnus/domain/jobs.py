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
    """Prefill the works together at one worker; answered by StepDone or JobError."""

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


class JobError(Outcome, frozen=True, gc=False, array_like=True, tag=True):
    """The job ended without a result."""

    reason: str


AnyJob: TypeAlias = StepJob | HandoffJob | StopJob
AnyOutcome: TypeAlias = StepDone | HandoffDone | FirstToken | DecodeDone | JobError
