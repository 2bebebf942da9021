"""Fold of a run's facts and placements into one record per request (sec. 3.3).

TTFT = queue + cache wait + prefill + ext, exact in nanoseconds for every request. It counts from
the planned arrival, so a late sender makes the queue longer, never the TTFT shorter. Of several
attempts the last step is the prefill and all before it is queue; the hit is that step's, once.

Cache wait is what a copy of blocks held the last step up: it is counted where the request's own copy
ended at the instant at which the step started, from the latest of the copy's start, the end of the
worker's step before, and the request's arrival or return. A worker that was busy all the while was
not held up.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import (
    FirstTokenEmitted,
    RequestArrived,
    RequestCancelled,
    RequestEnded,
    RequestsReturned,
    StepFailed,
    StepFinished,
    StepStarted,
    TransferFailed,
    TransferFinished,
    TransferStarted,
)
from vertumnus.domain.orders import Prefill
from vertumnus.domain.request import Request
from vertumnus.domain.units import Epoch, JobId, Nanoseconds, RequestId, Tokens, to_seconds
from vertumnus.records.request_record import Ending, RequestRecord
from vertumnus.trace.oracle import OracleCache

Handlers: TypeAlias = Mapping[type, Callable[[Any], None]]
"""What a fold does with each type of record that it reads; it passes over the rest."""


class _Open(Struct, gc=False):
    """A request under way: what its last placement and its last step said so far."""

    request: Request
    arrived_ns: Nanoseconds
    oracle_cached: Tokens | None
    attempts: int = 0
    placements: int = 0
    after_transfer: int | None = None
    returned_ns: Nanoseconds = 0
    cache_wait_ns: Nanoseconds = 0
    worker: CpGroup | None = None
    expected_cached: Tokens | None = None
    service_ns: Nanoseconds | None = None
    epoch: Epoch | None = None
    step_id: JobId | None = None
    cached: Tokens = 0
    step_uncached: Tokens = 0
    """R over all requests of the step."""
    started_ns: Nanoseconds | None = None
    prefilled_ns: Nanoseconds | None = None
    compute_ns: Nanoseconds | None = None
    first_token_ns: Nanoseconds | None = None
    cancelled: str | None = None


class Timeline:
    """One RequestRecord for each request, in the order of their ends."""

    def __init__(self, block_tokens: Tokens, *, live: bool) -> None:
        self.records: list[RequestRecord] = []
        self.problems: list[str] = []
        """Facts that cannot be: a second end, a request that never arrived, a step without work."""
        self.handlers: Handlers = {
            RequestArrived: self._arrived,
            Prefill: self._placed,
            StepStarted: self._step_started,
            StepFinished: self._step_finished,
            StepFailed: self._step_failed,
            RequestsReturned: self._returned,
            TransferStarted: self._transfer_started,
            TransferFinished: self._transfer_ended,
            TransferFailed: self._transfer_ended,
            FirstTokenEmitted: self._first_token,
            RequestCancelled: self._cancelled,
            RequestEnded: self._ended,
        }
        self._live = live
        self._oracle = OracleCache(block_tokens)
        self._open: dict[RequestId, _Open] = {}
        self._steps: dict[JobId, list[_Open]] = {}
        self._idle_since: dict[CpGroup, Nanoseconds] = {}
        """When each worker's last step ended."""
        self._copying: dict[int, Nanoseconds] = {}
        """When each copy under way started."""
        self._copied: dict[int, Nanoseconds] = {}
        """When those copies started that ended at ``_copied_ns``."""
        self._copied_ns: Nanoseconds = 0

    def interrupt(self, at: Nanoseconds) -> None:
        """Close the requests still under way at the end of the run, in order of arrival."""
        for request_id in sorted(self._open):
            opened = self._open.pop(request_id)
            self.records.append(self._record(opened, at, "interrupted", None, None))

    def _arrived(self, fact: RequestArrived) -> None:
        request = fact.request
        self._open[request.request_id] = _Open(request, fact.at, self._oracle.reusable_tokens(request))

    def _placed(self, order: Prefill) -> None:
        opened = self._open.get(order.request_id)
        if opened is None:
            self._unknown("placed", order.request_id)
            return
        opened.attempts = order.attempt + 1
        opened.placements += 1
        opened.after_transfer = order.after_transfer
        opened.cache_wait_ns = 0
        opened.worker = order.worker
        opened.expected_cached = order.expected_cached
        opened.service_ns = order.service_ns

    def _step_started(self, fact: StepStarted) -> None:
        opens, uncached = [], 0
        for item in fact.items:
            opened = self._open.get(item.request_id)
            if opened is None:  # cancelled while its step was on the way
                continue
            opens.append(opened)
            opened.worker = fact.worker
            opened.epoch = fact.epoch
            opened.step_id = fact.step_id
            opened.cached = item.cached_tokens
            opened.started_ns = fact.at
            if opened.after_transfer is not None:
                opened.cache_wait_ns = self._cache_wait(opened, opened.after_transfer, fact)
            opened.prefilled_ns = opened.compute_ns = opened.first_token_ns = None
            uncached += opened.request.input_tokens - item.cached_tokens
            if item.cached_tokens >= opened.request.input_tokens:
                self.problems.append(f"request {item.request_id} started a step with nothing to compute")
        for opened in opens:
            opened.step_uncached = uncached
        self._steps[fact.step_id] = opens

    def _cache_wait(self, opened: _Open, transfer_id: int, fact: StepStarted) -> Nanoseconds:
        copy_began = self._copied.get(transfer_id)
        if copy_began is None or self._copied_ns != fact.at:
            return 0
        came = max(opened.arrived_ns, opened.returned_ns)
        return fact.at - max(copy_began, came, self._idle_since.get(fact.worker, 0))

    def _step_finished(self, fact: StepFinished) -> None:
        self._idle_since[fact.worker] = fact.at
        for opened in self._steps.pop(fact.step_id, ()):
            opened.prefilled_ns = fact.at
            opened.compute_ns = fact.compute_ns

    def _step_failed(self, fact: StepFailed) -> None:
        self._idle_since[fact.worker] = fact.at
        self._steps.pop(fact.step_id, None)

    def _returned(self, fact: RequestsReturned) -> None:
        for request_id in fact.request_ids:
            opened = self._open.get(request_id)
            if opened is not None:
                opened.returned_ns = fact.at

    def _transfer_started(self, fact: TransferStarted) -> None:
        self._copying[fact.transfer_id] = fact.at

    def _transfer_ended(self, fact: TransferFinished | TransferFailed) -> None:
        if fact.at != self._copied_ns:
            self._copied, self._copied_ns = {}, fact.at
        self._copied[fact.transfer_id] = self._copying.pop(fact.transfer_id, fact.at)

    def _first_token(self, fact: FirstTokenEmitted) -> None:
        opened = self._open.get(fact.request_id)
        if opened is not None:
            opened.first_token_ns = fact.at

    def _cancelled(self, fact: RequestCancelled) -> None:
        opened = self._open.get(fact.request_id)
        if opened is not None and opened.cancelled is None:
            opened.cancelled = cancelled_by(fact, opened.request)

    def _ended(self, fact: RequestEnded) -> None:
        opened = self._open.pop(fact.request_id, None)
        if opened is None:
            self._unknown("ended", fact.request_id)
            return
        if fact.status == "finished" and opened.first_token_ns is None:
            self.problems.append(f"request {fact.request_id} finished without a first token")
        reason = opened.cancelled if fact.status == "cancelled" else fact.reason
        self.records.append(self._record(opened, fact.at, fact.status, reason, fact.output_tokens))

    def _unknown(self, what: str, request_id: RequestId) -> None:
        self.problems.append(f"request {request_id} was {what} after its end or before its arrival")

    def _record(
        self, opened: _Open, at: Nanoseconds, status: Ending, reason: str | None, output_tokens: Tokens | None
    ) -> RequestRecord:
        request = opened.request
        arrival, started = request.arrival_ns, opened.started_ns
        prefilled, first_token = opened.prefilled_ns, opened.first_token_ns
        prefill = None if started is None or prefilled is None else prefilled - started
        ttft = None if prefill is None or first_token is None else first_token - arrival
        tpot = None
        if status == "finished" and first_token is not None and output_tokens and output_tokens > 1:
            tpot = (at - first_token) // (output_tokens - 1)
        # positional and in one call: this is the fold's most expensive line
        return RequestRecord(
            request.request_id,
            arrival,
            at,
            status,
            reason,
            opened.attempts,
            opened.placements,
            opened.worker,
            opened.epoch,
            opened.step_id,
            request.input_tokens,
            None if started is None else opened.cached,
            output_tokens,
            opened.oracle_cached,
            opened.expected_cached,
            opened.service_ns,
            None if started is None else started - arrival - opened.cache_wait_ns,
            None if started is None else opened.cache_wait_ns,
            prefill,
            opened.compute_ns,
            None if ttft is None or prefilled is None or first_token is None else first_token - prefilled,
            ttft,
            tpot,
            None if status == "interrupted" else at - arrival,
            _gpu_time(opened, prefill),
            opened.arrived_ns - arrival if self._live else None,
            request.ttft_target_ns,
            _met(status, ttft, request.ttft_target_ns),
            request.tpot_target_ns,
            _tpot_met(status, output_tokens, tpot, request.tpot_target_ns),
        )


def cancelled_by(fact: RequestCancelled, request: Request) -> str:
    """Return who cancelled *request*, and when: "by client, 5.000 s after its arrival"."""
    return f"by {fact.by}, {to_seconds(fact.at - request.arrival_ns):.3f} s after its arrival"


def _gpu_time(opened: _Open, prefill: Nanoseconds | None) -> Nanoseconds | None:
    if prefill is None or opened.worker is None:
        return None
    uncached = opened.request.input_tokens - opened.cached
    return opened.worker.degree * prefill * uncached // max(1, opened.step_uncached)


def _met(status: Ending, took: Nanoseconds | None, target: Nanoseconds | None) -> bool | None:
    if target is None:
        return None
    return status == "finished" and took is not None and took <= target


def _tpot_met(
    status: Ending, output_tokens: Tokens | None, tpot: Nanoseconds | None, target: Nanoseconds | None
) -> bool | None:
    """Return `_met`, but None for a finished answer of one token, which has no TPOT."""
    undefined = status == "finished" and output_tokens is not None and output_tokens <= 1
    return None if undefined else _met(status, tpot, target)
