"""All folds of a run behind one call, batch by batch while it runs or later from its log."""

from collections.abc import Callable, Iterable
from typing import Any, get_args

from vertumnus.domain.codec import ORDER, Record
from vertumnus.domain.facts import AnyFact
from vertumnus.domain.units import Nanoseconds
from vertumnus.records.cache_ops import CacheOp, CacheOpList
from vertumnus.records.clock import Clock
from vertumnus.records.faults import Fault, FaultList
from vertumnus.records.forecasts import ForecastList, ForecastRow
from vertumnus.records.load import WorkerLoad, WorkerSample
from vertumnus.records.log import LogHeader
from vertumnus.records.reconfigs import Reconfig, ReconfigList
from vertumnus.records.request_record import RequestRecord
from vertumnus.records.timeline import Handlers, Timeline
from vertumnus.records.trie import HotPrefix, TrieSample, TrieSamples
from vertumnus.records.windows import WindowList, WindowRow

NOTHING: dict[type, tuple[Callable[[Any], None], ...]] = dict.fromkeys(get_args(AnyFact), ())
"""Every fact moves the clock, whether a fold reads it or not: orders take their time from it."""


class RunFolds:
    """What the run's tables are made of."""

    def __init__(self, header: LogHeader) -> None:
        self._timeline = Timeline(header.block_tokens, live=header.backend == "live")
        self._clock = Clock()
        self._load = WorkerLoad(header.composition.workers, header.records.worker_sample_ns, self._clock)
        self._faults = FaultList(self._clock)
        self._reconfigs = ReconfigList(self._clock)
        self._windows = WindowList(self._clock, self._load.composition)
        self._cache_ops = CacheOpList(self._clock)
        self._forecasts = ForecastList(self._clock)
        self._trie = TrieSamples(self._clock)
        self._problems: list[str] = []
        self._handlers = NOTHING | joined(
            self._timeline.handlers,
            self._load.handlers,
            self._faults.handlers,
            self._reconfigs.handlers,
            self._windows.handlers,
            self._cache_ops.handlers,
            self._forecasts.handlers,
            self._trie.handlers,
        )

    @property
    def now(self) -> Nanoseconds:
        """The latest instant that a fact told."""
        return self._clock.now

    @property
    def requests(self) -> list[RequestRecord]:
        """The requests that have ended, by id."""
        return sorted(self._timeline.records, key=lambda record: record.request_id)

    @property
    def samples(self) -> list[WorkerSample]:
        """The workers' samples so far, by time, then worker."""
        return self._load.samples

    @property
    def windows(self) -> list[WindowRow]:
        """The controller's windows so far, by time."""
        return self._windows.windows

    @property
    def reconfigs(self) -> list[Reconfig]:
        """The transitions that have ended, by the time of their end."""
        return self._reconfigs.reconfigs

    @property
    def cache_ops(self) -> list[CacheOp]:
        """The copies and reclamations that have ended, by the time of their order, then by id."""
        return sorted(self._cache_ops.cache_ops, key=lambda row: (row.t_ns, row.transfer_id or 0))

    @property
    def trie_samples(self) -> list[TrieSample]:
        """The scans so far, one row a degree."""
        return self._trie.samples

    @property
    def hot_prefixes(self) -> list[HotPrefix]:
        """The hottest blocks of the scans so far."""
        return self._trie.hot

    @property
    def forecasts(self) -> list[ForecastRow]:
        """The forecasts' candidates so far, by the time of the answer."""
        return self._forecasts.forecasts

    @property
    def faults(self) -> list[Fault]:
        """What went wrong so far, by time."""
        return self._faults.faults

    @property
    def problems(self) -> tuple[str, ...]:
        """What cannot have happened and makes the run invalid."""
        return (*self._problems, *self._timeline.problems)

    def apply(self, records: Iterable[Record]) -> None:
        """Read *records*, in the order in which they were told."""
        table, now = self._handlers, self._clock.now
        body: Any  # any record: the table knows which types a handler takes
        for source, body in records:
            handlers = table.get(type(body))
            if handlers is None:
                continue
            if source != ORDER and body.at != now:
                now = self._tick(body.at)
            for handler in handlers:
                handler(body)

    def finish(self) -> None:
        """End the run at its last fact: requests, copies and forecasts under way become interrupted."""
        self._timeline.interrupt(self._clock.now)
        self._load.finish(self._clock.now)
        self._cache_ops.interrupt()
        self._forecasts.interrupt()

    def _tick(self, at: Nanoseconds) -> Nanoseconds:
        """Advance the clock to *at* and return it; note it when that is backwards."""
        clock = self._clock
        if at < clock.now:
            self._problems.append(f"the clock went backwards from {clock.now} to {at} ns")
        else:
            clock.now = at
            if at >= self._load.next_sample:
                self._load.sample_until(at)
        return clock.now


def joined(*handlers: Handlers) -> dict[type, tuple[Callable[[Any], None], ...]]:
    """Return the handlers of each type, in the order of the tables."""
    types = dict.fromkeys(kind for table in handlers for kind in table)
    return {kind: tuple(table[kind] for table in handlers if kind in table) for kind in types}
