"""A run's log through a fresh pool, stopped at any instant (one way: back is a new replay)."""

from collections import deque
from pathlib import Path
from typing import TypeAlias, cast

from vertumnus.domain.codec import INPUT
from vertumnus.domain.facts import InputFact
from vertumnus.domain.jobs import AnyOutcome
from vertumnus.domain.units import Nanoseconds
from vertumnus.records.log import GrowingLog
from vertumnus.run.pool import pool_of
from vertumnus.serving.replay import redo
from vertumnus_console.totals import Totals
from vertumnus_console.view import ClusterView, view_of

Input: TypeAlias = InputFact | AnyOutcome


class Replay:
    """Pool and totals of a run between two of its events.

    Only the log's inputs are read: the pool says all facts and orders again, so that it always
    stands between events, wherever the part of the log that is there ends.
    """

    def __init__(self, log: Path) -> None:
        """Stand before the first event of *log*; raises ConfigError when it cannot be replayed."""
        self._log = GrowingLog(log)
        self.header = self._log.header
        self._pool = pool_of(self.header)
        self._totals = Totals(self.header.block_tokens, live=self.header.backend == "live")
        self._loop = redo(self._pool.fleet, self._pool.control, self._totals.tell)
        self._ahead: deque[Input] = deque()
        self.now_ns: Nanoseconds | None = None
        """Instant of the last event taken; None before the first."""

    def advance(self, until_ns: Nanoseconds | None, events: int) -> bool:
        """Take at most *events* events, of those before *until_ns* if it is given.

        Returns whether more of them are there at once.
        """
        for _ in range(events):
            event = self._next()
            if event is None or (until_ns is not None and event.at >= until_ns):
                return False
            self._ahead.popleft()
            self.now_ns = event.at
            self._loop.take(event)
        return True

    @property
    def is_at_end(self) -> bool:
        """Whether every event that the log has was taken."""
        return self._next() is None

    def view(self, now: Nanoseconds) -> ClusterView:
        """Return what the run looked like at *now*, which is not before `now_ns`."""
        return view_of(self._pool, self._totals, self.header.block_tokens, now)

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def _next(self) -> Input | None:
        while not self._ahead:
            batch = self._log.next_batch()
            if batch is None:
                return None
            self._ahead.extend(cast(Input, record.body) for record in batch if record.source == INPUT)
        return self._ahead[0]
