"""The live backend: the wall clock over ranks that compute (sec. 8).

What happens, and in which order it is told: what is due, what was posted, what came of jobs and ranks. What
ranks are told and what they answer is the coordinator's.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.facts import InputFact, TimerFired
from vertumnus.domain.jobs import AnyJob, AnyOutcome
from vertumnus.domain.units import SECOND, Epoch, Nanoseconds, SlotId
from vertumnus.live.agenda import Agenda
from vertumnus.live.coordinator import Client, Coordinator, PromptLookup, TokenSink
from vertumnus.live.plan import LivePlan
from vertumnus.live.rank_pool import FIRST_EPOCH, RankPool
from vertumnus.live.steps import StepResult

_LONGEST_WAIT_NS = SECOND // 5
"""Heartbeats, and where the system cannot wait on a process its end, go unnoticed no longer than this."""


class LiveEngine:
    """An `Engine` over rank processes. Use: start, start_clock, then serve; close in any case."""

    def __init__(
        self,
        plan: LivePlan,
        prompts: PromptLookup,
        on_tokens: TokenSink,
        first_epoch: Epoch = FIRST_EPOCH,
    ) -> None:
        """Prepare; nothing runs before `start`. Ranks begin as the plan's workers in *first_epoch*."""
        self.plan = plan
        self.first_epoch = first_epoch
        self.client = Client(prompts, on_tokens)
        """Where prompts' tokens are found and outputs go; to be changed between two jobs."""
        self.before_wait: Callable[[], object] = _nothing
        """Called before each wait, at least every `_LONGEST_WAIT_NS`: what must not stay behind meanwhile."""
        self._pool = RankPool(plan, first_epoch)
        self._ready: deque[InputFact | AnyOutcome] = deque()
        tell = self._ready.append
        self._coordinator = Coordinator(plan, self._pool, self.client, first_epoch, tell)
        self._agenda = Agenda()
        # a due timer among those: until it is told, nothing else that is due overtakes it
        self._late: TimerFired | None = None
        self._origin_ns = time.monotonic_ns()

    def start(self) -> None:
        """Start all ranks and wait until they are ready.

        Call it from a thread that lives as long as the run: on Linux ranks die with the thread that
        started them.
        Raises ConfigError for the user's mistakes, StartError for the rest. Call `close` even then.
        """
        self._pool.start()
        self._pool.wake_on(self._agenda.wake_fd)

    def start_clock(self) -> None:
        """Make this moment 0 of the run's clock: what came before is not part of the run.

        Raises ProtocolError while something is scheduled or under way.
        """
        if self._agenda or self._ready or self._coordinator.is_awaiting:
            raise ProtocolError("the run's clock must start before anything is scheduled or under way")
        self._origin_ns = time.monotonic_ns()

    @property
    def pids(self) -> list[int]:
        """Process ids of the ranks that are up."""
        return self._pool.pids

    @property
    def last_step(self) -> StepResult | None:
        """What the ranks measured in the step told last; calibration reads it."""
        return self._coordinator.last_step

    # ---- the contract of a backend --------------------------------------------------------------

    def now(self) -> Nanoseconds:
        """Return the time since `start_clock` [ns]."""
        return time.monotonic_ns() - self._origin_ns

    def schedule(self, fact: InputFact, at_ns: Nanoseconds) -> None:
        """Deliver *fact* from `next` at *at_ns*, or at once when that has passed."""
        self._agenda.schedule(fact, at_ns)

    def post(self, fact: InputFact) -> None:
        """Deliver *fact* from `next` as soon as possible; safe to call from another thread."""
        self._agenda.post(fact)

    def submit(self, job: AnyJob) -> None:
        """Start *job*. Raises ProtocolError for one that cannot follow the jobs before it."""
        self._coordinator.submit(job)

    def next(self) -> InputFact | AnyOutcome | None:
        """Return what happens next; None when nothing is scheduled, under way or posted."""
        while True:
            told = self._happening()
            if told is not None:
                return replace(told, at=self.now())
            if not self._agenda and not self._coordinator.is_awaiting:
                return None
            self.before_wait()
            self._pool.wait(self._agenda.wait_ns(self.now(), _LONGEST_WAIT_NS) / SECOND)
            self._coordinator.take_arrived()

    # ---- for those who check memory -------------------------------------------------------------

    def digests(self, slots: Iterable[SlotId]) -> dict[SlotId, bytes]:
        """Return what the ranks find in *slots* now, without those of ranks that are gone.

        Waits for the ranks, not for their steps; what they tell meanwhile comes from `next` as ever.
        """
        inspection = self._coordinator.inspect(slots)
        while inspection:
            self._pool.wait(_LONGEST_WAIT_NS / SECOND)
            self._coordinator.take_arrived()
        return inspection.found

    def close(self) -> None:
        """Stop every rank and free what they held; safe to call twice."""
        self._pool.close()
        self._agenda.close()

    def _happening(self) -> InputFact | AnyOutcome | None:
        """Return what is due, else what was taken in; a timer comes after all that had arrived by then."""
        told: InputFact | AnyOutcome | None = self._agenda.take(self.now()) if self._late is None else None
        if isinstance(told, TimerFired):
            # as in `liveness`: a coordinator that was away must not blame ranks whose answer is here
            self._coordinator.take_arrived()
            self._ready.append(told)
            self._late, told = told, None
        if told is None and self._ready:
            told = self._ready.popleft()
            if told is self._late:
                self._late = None
        return told


def _nothing() -> None:
    """What is done before a wait unless somebody asks for more."""
