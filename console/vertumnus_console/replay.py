"""A run's log through a fresh pool, stopped at any instant; back goes by kept states (`keyframes`)."""

from collections import deque
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

from vertumnus.domain.codec import INPUT
from vertumnus.domain.facts import InputFact
from vertumnus.domain.jobs import AnyOutcome
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.placement import Observer
from vertumnus.records.log import GrowingLog
from vertumnus.run.pool import Pool, pool_of
from vertumnus.serving.loop import Loop
from vertumnus.serving.replay import redo
from vertumnus_console.agreement import Agreement
from vertumnus_console.folds import Folds
from vertumnus_console.keyframes import Keyframe, Keyframes, keyframe
from vertumnus_console.shelf import Shelf

WATCHED = 64
"""Workers up to which every placement is kept, in larger pools every second, third, ...: pricing 512 workers
takes 8 ms a placement, finding the cheapest of them 1 ms."""

WORTH_KEEPING = 5_000
"""Events beyond the state on the shelf for which leaving puts a newer one there: half a second of replay."""

Input: TypeAlias = InputFact | AnyOutcome


class _State(NamedTuple):
    """All that a replay is between two events; one graph of objects, copied as one."""

    pool: Pool
    folds: Folds
    agreement: Agreement
    loop: Loop
    ahead: deque[Input]
    place: int
    """In the log, of what is not read yet."""
    now_ns: Nanoseconds | None
    events: int


class Replay:
    """Pool and totals of a run between two of its events.

    Of the log's records the inputs are taken: the pool says all facts and orders again, so that it always
    stands between events, wherever the part of the log that is there ends. Placements are held against the
    log's (`agreement`).
    """

    def __init__(self, log: Path, shelf: Shelf | None = None) -> None:
        """Stand before the first event of *log*, or at the state that *shelf* has of it.

        Raises ConfigError when the log cannot be replayed.
        """
        self._log = GrowingLog(log)
        self.header = self._log.header
        self._start = self._log.place
        self._keyframes = Keyframes()
        self.now_ns: Nanoseconds | None = None
        """Instant of the last event taken; None before the first."""
        self.events = 0
        """Taken so far."""
        self._shelf = shelf
        if not self._resume():
            self._begin()

    def advance(self, until_ns: Nanoseconds | None, events: int) -> bool:
        """Take at most *events* events, of those before *until_ns* if it is given.

        Returns whether more of them are there at once. Raises Disagreement.
        """
        for _ in range(events):
            event = self._next()
            if event is None or (until_ns is not None and event.at >= until_ns):
                return False
            self._ahead.popleft()
            self.now_ns = event.at
            self.events += 1
            self._loop.take(event)
            if self.folds.losses.is_open:
                self.folds.losses.settle(self.pool.fleet.can_serve)
        if self._keyframes.is_due(self.events):
            frame = self._frame()
            self._keyframes.keep(frame)
            if self._shelf is not None:
                self._shelf.put(frame)
        return True

    def go_before(self, at: Nanoseconds) -> None:
        """Go back to a place before instant *at*, as near to it as a kept state or the start is."""
        state = self._keyframes.before(at)
        if state is None:
            self._begin()
        else:
            self._restore(state)

    @property
    def is_at_end(self) -> bool:
        """Whether every event that the log has was taken."""
        return self._next() is None

    @property
    def is_torn(self) -> bool:
        """At the end: whether bytes that are no whole record follow, the last write of a killed run."""
        return self._log.is_torn

    @property
    def read(self) -> float:
        """The share of the log that was read, 0..1."""
        return self._log.place / max(self._log.place, self._log.size)

    def shelve(self) -> None:
        """Let the next replay of this run begin where this one stands, if that saves it much."""
        if self._shelf is not None and self.events >= self._shelf.events + WORTH_KEEPING:
            self._shelf.put(self._frame())

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def _resume(self) -> bool:
        """Take the state on the shelf; return whether there was one."""
        frame = None if self._shelf is None else self._shelf.newest()
        if frame is None:
            return False
        try:
            state = frame.load()
        except Exception:  # what is wrong with it costs its time, nothing else
            return False
        self._restore(state)
        self._keyframes.keep(frame)
        return True

    def _frame(self) -> Keyframe:
        return keyframe(self.now_ns or 0, self.events, self._log.place, self._state())

    def _begin(self) -> None:
        pool, folds = pool_of(self.header), Folds(self.header)
        agreement = Agreement(folds.tell)
        loop = redo(pool.fleet, pool.control, agreement.tell)
        self._restore(_State(pool, folds, agreement, loop, deque(), self._start, None, 0))

    def _state(self) -> _State:
        return _State(
            self.pool,
            self.folds,
            self._agreement,
            self._loop,
            self._ahead,
            self._log.place,
            self.now_ns,
            self.events,
        )

    def _restore(self, state: _State) -> None:
        self.pool, self.folds, self._loop = state.pool, state.folds, state.loop
        self._agreement = state.agreement
        self._ahead = state.ahead
        self.events = state.events
        self.now_ns = state.now_ns
        self._log.go_to(state.place)
        control, folds = self.pool.control, self.folds
        every = -(-len(control.pool.groups) // WATCHED)
        control.watch(
            Observer(
                lambda decision: folds.observe(decision, control.policy),
                lambda request_id: request_id % every == 0,
            )
        )

    def _next(self) -> Input | None:
        while not self._ahead:
            batch = self._log.next_batch()
            if batch is None:
                return None
            self._agreement.read(batch)
            self._ahead.extend(cast(Input, record.body) for record in batch if record.source == INPUT)
        return self._ahead[0]
