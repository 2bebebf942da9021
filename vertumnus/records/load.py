"""Fold of a run's facts and orders into each worker's load: running totals, sampled at even distances.

Workers come and go. The successors of a split or merge take their sources' place when their epoch is
sent, and count from there; a source has a last sample then, so that its totals stay. Apart from those
last ones, the degrees of the workers of one sample add up to G.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from vertumnus.domain.cluster import Composition, CpGroup
from vertumnus.domain.facts import (
    RankLost,
    RequestArrived,
    RequestEnded,
    RequestsReturned,
    StepFailed,
    StepFinished,
    StepStarted,
)
from vertumnus.domain.orders import AdoptEpoch, CloseTransition, Drain, Prefill, Reopen
from vertumnus.domain.units import Epoch, JobId, Nanoseconds, RequestId, Tokens
from vertumnus.records.clock import Clock
from vertumnus.records.timeline import Handlers

Service: TypeAlias = Literal["serving", "draining", "forming", "out of service", "ended"]
"""What a worker is there for; ended in its last sample."""


SPARSER_AFTER = 5_000
"""Instants after which samples are twice as far apart, again and again: a run of any length fits memory."""


class WorkerSample(Struct, frozen=True, gc=False):
    """A worker at one instant; the counts from ``busy_ns`` on are totals since its start."""

    t_ns: Nanoseconds
    worker: CpGroup
    epoch: Epoch
    service: Service
    since_ns: Nanoseconds
    """Its start: the run's, or when its epoch was sent."""
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
    since_ns: Nanoseconds = 0
    service: Service = "serving"
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
            self.service,
            self.since_ns,
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
    """Samples of every worker each *sample_ns* (see `SPARSER_AFTER`), and one more at the end of the run."""

    def __init__(self, workers: Iterable[CpGroup], sample_ns: Nanoseconds, clock: Clock) -> None:
        self.samples: list[WorkerSample] = []
        self.handlers: Handlers = {
            RequestArrived: self._arrived,
            Prefill: self._placed,
            StepStarted: self._step_started,
            StepFinished: self._step_finished,
            StepFailed: self._step_failed,
            RequestsReturned: self._returned,
            RequestEnded: self._ended,
            RankLost: self._rank_lost,
            Drain: self._drain,
            Reopen: self._reopen,
            AdoptEpoch: self._adopt,
            CloseTransition: self._transition_closed,
        }
        self._clock = clock
        self._sample_ns = sample_ns
        self._instants = 0
        self.next_sample = sample_ns
        """When the next sample is due."""
        self._loads = {worker: _Load(worker) for worker in sorted(workers)}
        self._queued: dict[RequestId, _Place] = {}
        self._input_tokens: dict[RequestId, Tokens] = {}
        self._steps: dict[JobId, _Step] = {}
        self._sampled_ns: Nanoseconds | None = None

    def composition(self) -> Composition:
        """Return the workers in service now, draining and forming ones too."""
        in_service = (load for load in self._loads.values() if load.service != "out of service")
        return Composition(tuple(load.worker for load in in_service))

    def sample_until(self, at: Nanoseconds) -> None:
        """Take the samples due up to *at*, before what happens at *at* counts."""
        while self.next_sample <= at:
            self._sample(self.next_sample)
            self._instants += 1
            if self._instants % SPARSER_AFTER == 0:
                self._sample_ns *= 2
            self.next_sample += self._sample_ns

    def finish(self, at: Nanoseconds) -> None:
        """Take the last sample, at the end of the run."""
        if self._sampled_ns is None or self._sampled_ns < at:
            self._sample(at)

    def _sample(self, at: Nanoseconds) -> None:
        self._sampled_ns = at
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
            load = _Load(worker)
            self._replace((), [load])
        return load

    def _replace(self, gone: Iterable[CpGroup], new: Iterable[_Load]) -> None:
        kept = [load for worker, load in self._loads.items() if worker not in gone]
        self._loads = {load.worker: load for load in sorted([*kept, *new], key=lambda load: load.worker)}

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
        load = self._of(fact.worker)
        self._idle(load, fact.at)
        if fact.ends_worker:
            load.service = "out of service"

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

    # ---- workers that come and go ---------------------------------------------------------------

    def _rank_lost(self, fact: RankLost) -> None:
        for load in self._loads.values():
            if fact.rank in load.worker.ranks:
                load.service = "out of service"

    def _drain(self, order: Drain) -> None:
        self._pass(order.worker, "draining")

    def _reopen(self, order: Reopen) -> None:
        self._pass(order.worker, "serving")

    def _pass(self, worker: CpGroup, service: Service) -> None:
        load = self._of(worker)
        if load.service != "out of service":
            load.service = service

    def _adopt(self, order: AdoptEpoch) -> None:
        now = self._clock.now
        sources = self._at_ranks_of(order.workers)
        for load in sources:
            load.service = "ended"
            self.samples.append(load.sample(now))
        targets = [_Load(worker, order.epoch, now, "forming") for worker in order.workers]
        self._replace({load.worker for load in sources}, targets)

    def _at_ranks_of(self, workers: Sequence[CpGroup]) -> list[_Load]:
        mask = sum(worker.mask for worker in workers)
        return [load for load in self._loads.values() if load.worker.mask & mask]

    def _transition_closed(self, order: CloseTransition) -> None:
        if order.outcome == "failed":
            for worker in order.targets:
                self._of(worker).service = "out of service"
