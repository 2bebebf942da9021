"""Why a request went where it went: its placements made anew from a run's log, and what came of them.

The log is replayed up to each placement of the request, all candidates are priced as they were, and the
replay goes on until it shows when each candidate would in fact have been free for it: the jobs that stood
before it there have ended by then. A replay that places requests elsewhere than the run did explains nothing.
"""

from collections import deque
from contextlib import closing
from typing import NamedTuple, cast

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import INPUT, Body
from vertumnus.domain.errors import ConfigError, VertumnusError
from vertumnus.domain.facts import (
    AnyFact,
    FirstTokenEmitted,
    InputFact,
    RequestArrived,
    RequestCancelled,
    RequestEnded,
    RequestsReturned,
    StepFinished,
    StepStarted,
)
from vertumnus.domain.jobs import AnyOutcome
from vertumnus.domain.orders import Prefill
from vertumnus.domain.request import Request
from vertumnus.domain.units import JobId, Nanoseconds, RequestId, Tokens, to_seconds
from vertumnus.policy.config import PolicyConfig
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.policy.placement import Decision, Observer, Offer
from vertumnus.records.log import read_log
from vertumnus.records.run_dir import RunDir
from vertumnus.records.timeline import cancelled_by
from vertumnus.run.pool import pool_of
from vertumnus.serving.replay import redo


class Candidate(NamedTuple):
    """One worker in one placement."""

    offer: Offer
    cost: int | None
    """J, or the policy's own measure; None where its rule left the worker out."""
    hindsight_ns: Nanoseconds | None
    """Wait and service, the wait until those that stood before it were in fact done; None if unknown."""


class Outcome(NamedTuple):
    """What came of a placement; None wherever the request did not come that far."""

    started_ns: Nanoseconds | None
    prefilled_ns: Nanoseconds | None
    first_token_ns: Nanoseconds | None
    cached_tokens: Tokens | None
    ended: str | None
    """Status and reason, or why it was placed elsewhere."""


class Placement(NamedTuple):
    """One placement of the request, its candidates from the cheapest to the dearest, then the others."""

    decision: Decision
    policy: PolicyConfig
    candidates: tuple[Candidate, ...]
    outcome: Outcome

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that the request went to."""
        if self.decision.chosen is None:
            return None
        worker = self.decision.offers[self.decision.chosen].worker
        return next(each for each in self.candidates if each.offer.worker == worker)

    @property
    def runner_up(self) -> Candidate | None:
        """The candidate that would have had the request next."""
        judged = [each for each in self.candidates if each.cost is not None and each != self.chosen]
        return judged[0] if judged else None

    @property
    def regret_ns(self) -> Nanoseconds | None:
        """What the candidate that hindsight prefers would have saved; None where one is unknown."""
        known = [each.hindsight_ns for each in self.candidates]
        if self.chosen is None or self.chosen.hindsight_ns is None or None in known:
            return None
        return self.chosen.hindsight_ns - min(cast(list[int], known))


class Explanation(NamedTuple):
    """A request's placements, in order."""

    backend: str
    request: Request
    placements: tuple[Placement, ...]
    is_cut: bool
    """Whether the log's end is torn before all of it was told."""


def explain_run(run: RunDir, request_id: RequestId) -> Explanation:
    """Explain the placements of *request_id* in *run*.

    Raises ConfigError when the log cannot be replayed, is damaged, or has no such request; ReplayStopped, or
    another VertumnusError where a request is placed elsewhere than it was.
    """
    header, records = read_log(run.log)
    pool = pool_of(header)
    watcher = _Watcher(pool.control, request_id)
    loop = redo(pool.fleet, pool.control, watcher.record)
    with closing(records):
        for source, body in records:
            if source == INPUT:
                loop.take(cast(InputFact | AnyOutcome, body))
                if watcher.is_done:
                    break
            elif isinstance(body, Prefill):
                watcher.compare(body)
    if watcher.request is None:
        found = f"its requests are 0 to {watcher.arrived - 1}" if watcher.arrived else "it has none"
        cut = ", and the log's end is cut off" if records.truncated else ""
        raise ConfigError(f"request {request_id}: not in run {run.run_id}; {found}{cut}")
    return Explanation(header.backend, watcher.request, watcher.placements(), records.truncated)


class _Seen:
    """A placement, and what the replay has shown of it since."""

    def __init__(self, decision: Decision, control: ControlPlane, arrival_ns: Nanoseconds) -> None:
        self.decision = decision
        self.policy = control.policy
        self.started: Nanoseconds | None = None
        self.prefilled: Nanoseconds | None = None
        self.first_token: Nanoseconds | None = None
        self.cached: Tokens | None = None
        self.ended: str | None = None
        self.freed: dict[CpGroup, Nanoseconds] = {}
        self.before: dict[CpGroup, set[RequestId]] = {}
        for offer in decision.offers:
            priority = arrival_ns if offer.priority is None else offer.priority
            self.before[offer.worker] = set(control.ledger.before(offer.worker, priority))
            self.freed[offer.worker] = decision.at

    @property
    def is_over(self) -> bool:
        """Whether the request left this placement, and so did all that stood before it anywhere."""
        return self.ended is not None and not any(self.before.values())

    def gone(self, request_id: RequestId, worker: CpGroup | None, at: Nanoseconds) -> None:
        """Note that a request no longer stands before this one, at *worker* or anywhere."""
        for group in self.before if worker is None else (worker,):
            if request_id in self.before.get(group, ()):
                self.before[group].discard(request_id)
                self.freed[group] = at

    def placement(self) -> Placement:
        """Return the placement with what is known of it."""
        pairs = zip(self.decision.offers, self.decision.costs, strict=True)
        candidates = [Candidate(offer, cost, self._hindsight(offer)) for offer, cost in pairs]
        candidates.sort(key=_order)
        outcome = Outcome(self.started, self.prefilled, self.first_token, self.cached, self.ended)
        return Placement(self.decision, self.policy, tuple(candidates), outcome)

    def _hindsight(self, offer: Offer) -> Nanoseconds | None:
        if self.before[offer.worker]:
            return None  # the log ends before they do
        ready = self.freed[offer.worker]
        if offer.pull is not None:
            ready = max(ready, offer.pull.ready_ns)
        return ready - self.decision.at + offer.service_ns


class _Watcher:
    """Follows one request through a replay."""

    def __init__(self, control: ControlPlane, request_id: RequestId) -> None:
        self._control = control
        self._request_id = request_id
        self._seen: list[_Seen] = []
        self._steps: dict[JobId, tuple[RequestId, ...]] = {}
        self._placed: deque[Prefill] = deque()
        self._at: Nanoseconds = 0
        self._is_ended = False
        self._cancelled: str | None = None
        self.arrived = 0
        self.request: Request | None = None
        control.watch(Observer(self._decided, lambda asked: asked == request_id))

    @property
    def is_done(self) -> bool:
        """Whether nothing that the replay may still show matters."""
        return self._is_ended and all(seen.is_over for seen in self._seen)

    def placements(self) -> tuple[Placement, ...]:
        """Return what was seen."""
        return tuple(seen.placement() for seen in self._seen)

    def compare(self, logged: Prefill) -> None:
        """Hold the log's next placement against the replay's. Raises VertumnusError for another."""
        again = self._placed.popleft() if self._placed else None
        if again is None or (again.request_id, again.worker) != (logged.request_id, logged.worker):
            now = "none" if again is None else f"request {again.request_id} at {again.worker}"
            raise VertumnusError(
                f"request {logged.request_id} was placed at {logged.worker}, and this version places {now}; "
                f"from {to_seconds(self._at):.3f} s on the log cannot be explained"
            )

    def record(self, _source: int, body: Body) -> None:
        """Take one record of the replay."""
        if isinstance(body, Prefill):
            self._placed.append(body)
        elif isinstance(body, RequestArrived):
            self._at = body.at
            self.arrived += 1
            if body.request.request_id == self._request_id:
                self.request = body.request
        elif isinstance(body, StepStarted):
            self._steps[body.step_id] = tuple(item.request_id for item in body.items)
            self._started(body)
        elif isinstance(body, StepFinished):
            self._finished(body, self._steps.pop(body.step_id, ()))
        elif self._seen and isinstance(body, AnyFact):
            self._follow(body, self._seen[-1])

    def _decided(self, decision: Decision) -> None:
        assert self.request is not None, "the arrival is recorded before it is placed"
        self._seen.append(_Seen(decision, self._control, self.request.arrival_ns))

    def _started(self, fact: StepStarted) -> None:
        for item in fact.items:
            if item.request_id == self._request_id:
                self._seen[-1].started, self._seen[-1].cached = fact.at, item.cached_tokens

    def _finished(self, fact: StepFinished, request_ids: tuple[RequestId, ...]) -> None:
        for request_id in request_ids:
            self._gone(request_id, fact.worker, fact.at)
            if request_id == self._request_id:
                self._seen[-1].prefilled = fact.at

    def _follow(self, fact: AnyFact, last: _Seen) -> None:
        mine = self._request_id
        if isinstance(fact, RequestsReturned):
            for request_id in fact.request_ids:
                self._gone(request_id, fact.worker, fact.at)
                if request_id == mine:
                    last.ended = f"returned: {fact.reason}"
        elif isinstance(fact, FirstTokenEmitted) and fact.request_id == mine:
            last.first_token = fact.at
        elif isinstance(fact, RequestCancelled) and fact.request_id == mine and self._cancelled is None:
            assert self.request is not None, "it was placed"
            self._cancelled = cancelled_by(fact, self.request)
        elif isinstance(fact, RequestEnded):
            self._gone(fact.request_id, None, fact.at)
            if fact.request_id == mine:
                self._is_ended = True
                reason = self._cancelled if fact.status == "cancelled" else fact.reason
                last.ended = fact.status if reason is None else f"{fact.status}: {reason}"

    def _gone(self, request_id: RequestId, worker: CpGroup | None, at: Nanoseconds) -> None:
        for seen in self._seen:
            seen.gone(request_id, worker, at)


def _order(candidate: Candidate) -> tuple[bool, int, int, int]:
    worker = candidate.offer.worker
    return candidate.cost is None, candidate.cost or 0, worker.degree, worker.first_rank
