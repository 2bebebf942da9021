"""Fold of a run's facts into each worker's load: running totals, sampled at even distances."""

from collections.abc import Iterable

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import (
    RequestArrived,
    RequestEnded,
    RequestsReturned,
    StepFailed,
    StepFinished,
    StepStarted,
)
from vertumnus.domain.orders import Prefill
from vertumnus.domain.units import Epoch, JobId, Nanoseconds, RequestId, Tokens
from vertumnus.records.timeline import Handlers


class WorkerSample(Struct, frozen=True, gc=False):
    """A worker at one instant; the counts from ``busy_ns`` on are totals since the run's start."""

    t_ns: Nanoseconds
    worker: CpGroup
    epoch: Epoch
    queued_requests: int
    queued_ns: Nanoseconds
    """Predicted prefill time of the queued requests."""
    running_requests: int
    queue_peak: int
    """Most requests queued at once so far."""
    busy_ns: Nanoseconds
    requests: int
    """Requests whose prefill was finished here."""
    input_tokens: Tokens
    cached_tokens: Tokens


class _Load(Struct, gc=False):
    worker: CpGroup
    epoch: Epoch = 0
    queued: int = 0
    queued_ns: Nanoseconds = 0
    peak: int = 0
    running: int = 0
    busy_since: Nanoseconds | None = None
    busy_ns: Nanoseconds = 0
    requests: int = 0
    input_tokens: Tokens = 0
    cached_tokens: Tokens = 0

    def sample(self, at: Nanoseconds) -> WorkerSample:
        under_way = 0 if self.busy_since is None else at - self.busy_since
        return WorkerSample(
            at,
            self.worker,
            self.epoch,
            self.queued,
            self.queued_ns,
            self.running,
            self.peak,
            self.busy_ns + under_way,
            self.requests,
            self.input_tokens,
            self.cached_tokens,
        )


class _Place(Struct, frozen=True, gc=False):
    """Where a request is queued and what it counts for there."""

    load: _Load
    service_ns: Nanoseconds


class _Step(Struct, frozen=True, gc=False):
    requests: int
    input_tokens: Tokens
    cached_tokens: Tokens


class WorkerLoad:
    """Samples of every worker each *sample_ns*, and one more at the end of the run."""

    def __init__(self, workers: Iterable[CpGroup], sample_ns: Nanoseconds) -> None:
        self.samples: list[WorkerSample] = []
        self.handlers: Handlers = {
            RequestArrived: self._arrived,
            Prefill: self._placed,
            StepStarted: self._step_started,
            StepFinished: self._step_finished,
            StepFailed: self._step_failed,
            RequestsReturned: self._returned,
            RequestEnded: self._ended,
        }
        self._sample_ns = sample_ns
        self.next_sample = sample_ns
        """When the next sample is due."""
        self._loads = {worker: _Load(worker) for worker in sorted(workers)}
        self._queued: dict[RequestId, _Place] = {}
        self._input_tokens: dict[RequestId, Tokens] = {}
        self._steps: dict[JobId, _Step] = {}

    def sample_until(self, at: Nanoseconds) -> None:
        """Take the samples due up to *at*, before what happens at *at* counts."""
        while self.next_sample <= at:
            self._sample(self.next_sample)
            self.next_sample += self._sample_ns

    def finish(self, at: Nanoseconds) -> None:
        """Take the last sample, at the end of the run."""
        if not self.samples or self.samples[-1].t_ns < at:
            self._sample(at)

    def _sample(self, at: Nanoseconds) -> None:
        self.samples += [load.sample(at) for load in self._loads.values()]

    def _arrived(self, fact: RequestArrived) -> None:
        self._input_tokens[fact.request.request_id] = fact.request.input_tokens

    def _placed(self, order: Prefill) -> None:
        load = self._of(order.worker)
        self._queued[order.request_id] = _Place(load, order.service_ns)
        load.queued += 1
        load.queued_ns += order.service_ns
        if load.queued > load.peak:
            load.peak = load.queued

    def _of(self, worker: CpGroup) -> _Load:
        load = self._loads.get(worker)
        if load is None:
            load = self._loads[worker] = _Load(worker)
            self._loads = dict(sorted(self._loads.items()))
        return load

    def _leaves_queue(self, request_id: RequestId) -> None:
        place = self._queued.pop(request_id, None)
        if place is not None:
            place.load.queued -= 1
            place.load.queued_ns -= place.service_ns

    def _step_started(self, fact: StepStarted) -> None:
        load = self._of(fact.worker)
        inputs = cached = 0
        for item in fact.items:
            self._leaves_queue(item.request_id)
            inputs += self._input_tokens.get(item.request_id, 0)
            cached += item.cached_tokens
        self._steps[fact.step_id] = _Step(len(fact.items), inputs, cached)
        load.epoch = fact.epoch
        load.running = len(fact.items)
        load.busy_since = fact.at

    def _step_finished(self, fact: StepFinished) -> None:
        load = self._of(fact.worker)
        step = self._steps.pop(fact.step_id, None)
        if step is not None:
            load.requests += step.requests
            load.input_tokens += step.input_tokens
            load.cached_tokens += step.cached_tokens
        self._idle(load, fact.at)

    def _step_failed(self, fact: StepFailed) -> None:
        self._steps.pop(fact.step_id, None)
        self._idle(self._of(fact.worker), fact.at)

    @staticmethod
    def _idle(load: _Load, at: Nanoseconds) -> None:
        if load.busy_since is not None:
            load.busy_ns += at - load.busy_since
        load.busy_since, load.running = None, 0

    def _returned(self, fact: RequestsReturned) -> None:
        for request_id in fact.request_ids:
            self._leaves_queue(request_id)

    def _ended(self, fact: RequestEnded) -> None:
        self._leaves_queue(fact.request_id)
        self._input_tokens.pop(fact.request_id, None)
