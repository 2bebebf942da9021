"""The fleet: orders become jobs, and what the engine tells becomes facts (D3-D8).

One writer of worker state, the same for both backends. Each public method is one event: it takes
what happened and returns the facts that follow and the jobs that start, in order. A request holds
blocks from the start of its step to the end of its hand-off, and ends exactly once.

This file says who takes which event. The parts change the shared state and note which workers to look
at again; those go on, in that order, when the event is through.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from vertumnus.domain.facts import DecodeRankLost, DerivedFact, InputFact, RankLost, RequestArrived
from vertumnus.domain.jobs import (
    Adopted,
    AnyJob,
    AnyOutcome,
    CopyDone,
    DecodeDone,
    FirstToken,
    HandoffDone,
    JobError,
    StepDone,
)
from vertumnus.domain.orders import (
    AdoptEpoch,
    Answer,
    AnyOrder,
    Cancel,
    CloseTransition,
    Drain,
    NoteDrift,
    NoteScan,
    NoteWindow,
    Prefill,
    Reclaim,
    Reject,
    Reopen,
    Transfer,
)
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds, RequestId, Tokens
from vertumnus.workers.audit import FleetBooks, balance, check_workers
from vertumnus.workers.config import ClusterConfig
from vertumnus.workers.fleet_state import FleetState
from vertumnus.workers.geometry import Geometry
from vertumnus.workers.handoffs import Handoffs
from vertumnus.workers.losses import Losses
from vertumnus.workers.reclaims import Reclaims
from vertumnus.workers.requests import Requests
from vertumnus.workers.steps import Steps
from vertumnus.workers.transfers import Transfers
from vertumnus.workers.under_way import JobsUnderWay


class Effects(NamedTuple):
    """What follows from one event."""

    facts: list[DerivedFact]
    jobs: list[AnyJob]


class Fleet:
    """All workers, the decode pool and every request that has not ended."""

    def __init__(self, config: ClusterConfig, block_tokens: Tokens) -> None:
        self._state = state = FleetState(config, block_tokens)
        self._handoffs = handoffs = Handoffs(state)
        self._steps = steps = Steps(state, handoffs)
        self._transfers = transfers = Transfers(state)
        requests, losses = Requests(state, handoffs), Losses(state, steps, handoffs)
        self._geometry = geometry = Geometry(state, losses)
        self.workers = state.workers
        self.jobs = JobsUnderWay()
        """What the engine is at."""
        self._note: dict[type[InputFact], Callable[[Any], None]] = {
            RequestArrived: requests.arrived,
            RankLost: losses.rank_lost,
            DecodeRankLost: handoffs.rank_lost,
        }
        self._carry_out: dict[type[AnyOrder], Callable[[Any, Nanoseconds], None]] = {
            Prefill: requests.prefill,
            Cancel: requests.cancel,
            Reject: requests.reject,
            Transfer: transfers.begin,
            Reclaim: Reclaims(state).reclaim,
            Drain: geometry.drain,
            AdoptEpoch: geometry.adopt,
            Reopen: geometry.reopen,
            CloseTransition: geometry.close,
            NoteWindow: _told,
            NoteDrift: _told,
            NoteScan: _told,
            Answer: _told,
        }
        self._conclude: dict[type[AnyOutcome], Callable[[Any], object]] = {
            StepDone: steps.done,
            HandoffDone: handoffs.copied,
            FirstToken: handoffs.first_token,
            DecodeDone: handoffs.decoded,
            CopyDone: transfers.done,
            Adopted: geometry.adopted,
            JobError: self._job_failed,
        }
        self._failed: tuple[Callable[[JobError], bool], ...] = (
            losses.step_failed,
            handoffs.failed,
            transfers.failed,
            geometry.failed,
        )
        """Those who may wait for a job that failed; the one that does takes it."""

    @property
    def open_requests(self) -> int:
        """Requests that arrived and have not ended."""
        return len(self._state.requests)

    @property
    def is_busy(self) -> bool:
        """Whether the engine has a job whose outcome is awaited."""
        return bool(self._steps or self._handoffs or self._transfers or self._geometry)

    @property
    def can_serve(self) -> bool:
        """Whether a worker in service and a decode rank are left."""
        return not self._handoffs.is_over and any(worker.in_service for worker in self.workers.values())

    def awaiting_first_token(self) -> list[Request]:
        """Return the requests that have none yet and are still wanted, in order of arrival."""
        return [each for each in self._state.requests.values() if self.awaits_first_token(each.request_id)]

    def awaits_first_token(self, request_id: RequestId) -> bool:
        """Return whether the request has arrived, has no first token yet, and is still wanted."""
        if request_id not in self._state.requests:
            return False
        at = self._state.occupied.get(request_id)
        return at is None or not (at.is_decoding or at.is_cancelled)

    def note(self, fact: InputFact) -> Effects:
        """Take an input fact before the control plane answers it."""
        self._state.clock.now_ns = fact.at
        take = self._note.get(type(fact))
        if take is not None:
            take(fact)
        return self._effects(fact.at)

    def carry_out(self, order: AnyOrder, now: Nanoseconds) -> Effects:
        """Carry out one order at *now*. A SetTimer or Forecast is the loop's, not the fleet's."""
        self._state.clock.now_ns = now
        self._carry_out[type(order)](order, now)
        return self._effects(now)

    def conclude(self, outcome: AnyOutcome) -> Effects:
        """Take what became of a job; a stale job id changes nothing."""
        self.jobs.conclude(outcome)
        self._state.clock.now_ns = outcome.at
        self._conclude[type(outcome)](outcome)
        return self._effects(outcome.at)

    def books(self) -> FleetBooks:
        """Return the balance of blocks, pins and decode slots over all workers."""
        return balance(self._state, self._transfers.under_way, self._handoffs.decode_slots)

    def check(self) -> None:
        """Raise InvariantError unless every book balances: GPUs, blocks, pins, hand-offs, decode slots."""
        check_workers(self._state, self._transfers.under_way)
        self._handoffs.check()

    def _job_failed(self, outcome: JobError) -> None:
        for take in self._failed:
            if take(outcome):
                return

    def _go_on(self, now: Nanoseconds) -> None:
        """Let the workers that the event touched stall or resume, start a step, or be told drained."""
        workers, self._state.with_room = self._state.with_room, []
        for worker in workers:
            if worker.state == "serving":
                self._steps.go_on(worker, now)
            elif worker.state == "draining":
                self._geometry.tell_drained(worker, now)

    def _effects(self, now: Nanoseconds) -> Effects:
        state = self._state
        if state.with_room:
            self._go_on(now)
        if state.jobs:
            self.jobs.begin(state.jobs, now)
        effects = Effects(state.facts, state.jobs)
        state.facts, state.jobs = [], []
        return effects


def _told(order: NoteWindow | NoteDrift | NoteScan | Answer, now: Nanoseconds) -> None:
    """Such an order is the log's and the console's; no worker changes."""
