"""What shall happen: the control plane's answers to facts, carried out by the fleet and the loop."""

from typing import Literal, TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import Nanoseconds, RequestId, Tokens


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
    """Requests queued there that must have ended their prefill, in any way, before this one starts."""
    service_ns: Nanoseconds
    """s: predicted prefill time at this worker; reserved until the step ends [ns]."""
    expected_cached: Tokens
    """P as routing saw it; the step settles the truth."""


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


class SetTimer(Order, frozen=True, gc=False, array_like=True, tag=True):
    """Ask for TimerFired(name, at_ns) at *at_ns*."""

    name: str
    at_ns: Nanoseconds


AnyOrder: TypeAlias = Prefill | Cancel | Reject | SetTimer
