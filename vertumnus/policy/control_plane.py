"""The cluster's brain: facts go in, orders come out. No clock, no randomness, no I/O.

``handle`` is the only way in. Everything that one fact changes is changed when it returns, and
the same facts give the same orders, so a log can be replayed against a fresh control plane.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from vertumnus.domain.cluster import Composition, CpGroup, Lattice
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.facts import (
    AnyFact,
    EpochAdopted,
    ForecastFailed,
    ForecastFinished,
    OperatorActed,
    RankLost,
    RequestArrived,
    RequestCancelled,
    RequestEnded,
    RequestsReturned,
    StepFailed,
    StepFinished,
    StepStarted,
    TimerFired,
    WorkerDrained,
    WorkerFormed,
)
from vertumnus.domain.link import LinkConfig
from vertumnus.domain.move import Direction, Move
from vertumnus.domain.orders import AnyOrder, CloseTransition, SetTimer
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.profile import Kappa
from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import Blocks, JobId, Nanoseconds, RequestId, Tokens, to_ns
from vertumnus.policy.admission import Admission, AdmissionConfig
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.composer import Books, compose
from vertumnus.policy.config import CacheConfig, PolicyConfig
from vertumnus.policy.correction import CorrectedPrefillTime, Correction, CorrectionConfig
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.operators import Operators
from vertumnus.policy.placement import Observer
from vertumnus.policy.placer import Placer
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.residency import Lost
from vertumnus.policy.prefixes import Prefixes
from vertumnus.policy.reconfig.config import ControllerConfig, ManualController
from vertumnus.policy.reconfig.holds import Holds
from vertumnus.policy.reconfig.mode import Mode
from vertumnus.policy.reconfig.transition import Transition
from vertumnus.policy.requests import Requests
from vertumnus.policy.tuning import Tuning

SCAN = "scan"
"""Timer of the periodic scan of the prefix index (sec. 7.2)."""


class ControlPlane:
    """Places requests, keeps the ledger, the prefix index and its statistics."""

    def __init__(
        self,
        policy: PolicyConfig,
        cache: CacheConfig,
        composition: Composition,
        prefill_time: PrefillTimeModel,
        *,
        block_tokens: Tokens,
        blocks_per_rank: Blocks,
        max_attempts: int,
        lattice: Lattice,
        link: LinkConfig,
        block_bytes: int,
        longest_prompt: Tokens | None = None,
        controller: ControllerConfig | None = None,
        kappa: Mapping[int, Kappa] | None = None,
        token_scale: float = 1.0,
        correction: CorrectionConfig | None = None,
        admission: Admission | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._correction = Correction(correction or CorrectionConfig(enabled=False), prefill_time)
        prefill_time = CorrectedPrefillTime(prefill_time, self._correction)
        longest_needs = 1 if longest_prompt is None else blocks_for(longest_prompt, block_tokens)
        self.pool = PoolState(composition, blocks_per_rank, longest_needs)
        self.ledger = Ledger(self.pool.groups)
        self.prefixes = Prefixes(
            cache,
            self.pool,
            self.ledger,
            prefill_time,
            link,
            block_tokens=block_tokens,
            block_bytes=block_bytes,
        )
        self.index, self.statistics = self.prefixes.index, self.prefixes.statistics
        books = Books(self.pool, self.ledger, self.prefixes)
        self._composer = compose(
            books, lattice, prefill_time, controller or ManualController(), kappa or {}, token_scale
        )
        self._placer = Placer(
            policy, self.pool, self.ledger, prefill_time, block_tokens, self.prefixes.puller, observer
        )
        self.operators = self._take_operators(None if correction is None else self._correction)
        self.requests = Requests(
            books, self._placer, self._composer, admission or Admission(AdmissionConfig(), None), max_attempts
        )
        self._prefill_time = prefill_time
        self._scan_interval = to_ns(cache.scan_interval_s)
        self._running: dict[JobId, tuple[RequestId, ...]] = {}
        self._handlers: dict[type[AnyFact], Callable[[Any], list[AnyOrder]]] = {
            RequestArrived: self.requests.arrived,
            RequestCancelled: self.requests.cancelled,
            StepStarted: self._step_started,
            StepFinished: self._step_finished,
            StepFailed: self._step_failed,
            RequestsReturned: self.requests.returned,
            RequestEnded: self.requests.ended,
            RankLost: self._rank_lost,
            WorkerDrained: self._change_composition,
            EpochAdopted: self._change_composition,
            WorkerFormed: self._worker_formed,
            OperatorActed: self.operators.acted,
            ForecastFinished: self._composer.forecast_ended,
            ForecastFailed: self._composer.forecast_ended,
            TimerFired: self._timer_fired,
            **self.prefixes.handlers,
        }

    def _take_operators(self, correction: Correction | None) -> Operators:
        tuning = Tuning()
        tuning.add("policy", self._placer)
        tuning.add("controller", self._composer.controller)
        tuning.add("correction", correction)
        return Operators(self._composer, Holds(self.pool), self.prefixes.by_hand, tuning)

    def start(self) -> list[AnyOrder]:
        """Return the orders that come before the first fact."""
        return [SetTimer(SCAN, self._scan_interval), *self._composer.start()]

    def handle(self, fact: AnyFact) -> list[AnyOrder]:
        """Take one fact and return what shall happen because of it, in order."""
        self.prefixes.residency.catch_up(fact.at)
        handler = self._handlers.get(type(fact))
        return handler(fact) if handler is not None else []

    @property
    def transitions(self) -> tuple[Transition, ...]:
        """The changes of composition under way, in order of their epochs; live views."""
        return self._composer.transitions

    @property
    def policy(self) -> PolicyConfig:
        """The policy, with the parameters in force."""
        return self._placer.config

    def watch(self, observer: Observer | None) -> None:
        """Show *observer* the placements that it wants; copies of a control plane are watched by nobody."""
        self._placer.watch(observer)

    def mode(self, now: Nanoseconds) -> Mode:
        """Return who moves the composition at *now*."""
        return self._composer.mode.at(now)

    def legal_move(self, kind: Direction, workers: Collection[CpGroup]) -> Move:
        """Return the move that *workers* can make now. Raises ConfigError with every reason against it."""
        return self._composer.legal_move(kind, workers)

    def timers(self, now: Nanoseconds) -> list[SetTimer]:
        """Return the timers that run at *now*, those of controllers and transitions aside."""
        return [SetTimer(SCAN, (now // self._scan_interval + 1) * self._scan_interval)]

    def silence(self) -> None:
        """Leave the composition to operators from here on: the copy that a forecast tries a move on."""
        self._composer.silence()

    def check(self) -> None:
        """Raise InvariantError unless all books are consistent and settle with the open requests."""
        self.ledger.check()
        self.prefixes.check()
        if not self.requests.open and self.ledger.total_ns != 0:
            raise InvariantError(f"no request is open and {self.ledger.total_ns} ns are reserved")

    # ---- steps ----------------------------------------------------------------------------------

    def _step_started(self, fact: StepStarted) -> list[AnyOrder]:
        degree = fact.worker.degree
        lengths = [self.requests.open[item.request_id].request.input_tokens for item in fact.items]
        sizes = [
            (n - item.cached_tokens, item.cached_tokens) for n, item in zip(lengths, fact.items, strict=True)
        ]
        shares = self._prefill_time.step_shares(degree, sizes)
        for item, share in zip(fact.items, shares, strict=True):
            self.ledger.begin(item.request_id, share)
            placed = self.requests.open[item.request_id]
            if not placed.is_reuse_counted:  # once per request, however often it is placed
                placed.is_reuse_counted = True
                self.statistics.count_reuse(placed.request, degree, item.cached_tokens)
        self._correction.begin(fact.step_id, degree, sizes)
        self._running[fact.step_id] = tuple(item.request_id for item in fact.items)
        self.ledger.start(fact.worker, sum(shares), fact.at)
        self.prefixes.made_room(fact)
        return []

    def _step_finished(self, fact: StepFinished) -> list[AnyOrder]:
        self.ledger.stop(fact.worker)
        for request_id, first_block, owners in fact.installed:
            path = self.requests.open[request_id].request.block_keys or ()
            self.prefixes.computed(fact.worker, path, first_block, owners, fact.at)
        for request_id in self._running.pop(fact.step_id):
            self.requests.prefilled(request_id, fact.at)
        return self._correction.end(fact.step_id, fact.compute_ns)

    def _step_failed(self, fact: StepFailed) -> list[AnyOrder]:
        # the reservations go with RequestsReturned or RequestEnded
        self.ledger.stop(fact.worker)
        del self._running[fact.step_id]
        self._correction.drop(fact.step_id)
        if not fact.ends_worker:
            return []
        self._take_out(self.pool.workers[fact.worker], f"a step failed: {fact.reason}", fact.at)
        return self._change_composition(fact)

    # ---- losses, transitions, timers ------------------------------------------------------------

    def _rank_lost(self, fact: RankLost) -> list[AnyOrder]:
        self._take_out(self.pool.of_rank(fact.rank), f"rank {fact.rank} is lost: {fact.reason}", fact.at)
        return self._change_composition(fact)

    def _take_out(self, worker: WorkerState, reason: str, now: Nanoseconds) -> None:
        if worker.out_of_service is None:
            worker.out_of_service = reason
            self.prefixes.residency.report((Lost(worker.group.mask),), now)

    def _worker_formed(self, fact: WorkerFormed) -> list[AnyOrder]:
        self.prefixes.residency.report(fact.evicted, fact.at)
        return self._change_composition(fact)

    def _change_composition(self, fact: AnyFact) -> list[AnyOrder]:
        return self._and_who_waited(self._composer.handle(fact), fact.at)

    def _timer_fired(self, fact: TimerFired) -> list[AnyOrder]:
        if fact.name == SCAN:
            return [*self.prefixes.scan(fact.at), SetTimer(SCAN, fact.due_ns + self._scan_interval)]
        return self._and_who_waited(self._composer.timer_fired(fact), fact.at)

    def _and_who_waited(self, orders: list[AnyOrder], now: Nanoseconds) -> list[AnyOrder]:
        is_closed = any(isinstance(order, CloseTransition) for order in orders)
        return orders + self.requests.place_waiting(now) if is_closed else orders
