"""All folds of a run behind one call, batch by batch while it runs or later from its log."""

from collections.abc import Callable, Iterable
from typing import Any

from vertumnus.domain.codec import ORDER, Record
from vertumnus.domain.units import Nanoseconds
from vertumnus.records.faults import Fault, FaultList
from vertumnus.records.load import WorkerLoad, WorkerSample
from vertumnus.records.log import LogHeader
from vertumnus.records.request_record import RequestRecord
from vertumnus.records.timeline import Handlers, Timeline


class RunFolds:
    """What the run's tables are made of."""

    def __init__(self, header: LogHeader) -> None:
        self._timeline = Timeline(header.block_tokens, live=header.backend == "live")
        self._load = WorkerLoad(header.composition.workers, header.records.worker_sample_ns)
        self._faults = FaultList()
        self._problems: list[str] = []
        self._now: Nanoseconds = 0
        self._handlers = joined(self._timeline.handlers, self._load.handlers, self._faults.handlers)

    @property
    def now(self) -> Nanoseconds:
        """The latest instant that a fact told."""
        return self._now

    @property
    def requests(self) -> list[RequestRecord]:
        """The requests that have ended, by id."""
        return sorted(self._timeline.records, key=lambda record: record.request_id)

    @property
    def samples(self) -> list[WorkerSample]:
        """The workers' samples so far, by time, then worker."""
        return self._load.samples

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
        table, now = self._handlers, self._now
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
        """End the run at its last fact: requests under way become interrupted."""
        self._timeline.interrupt(self._now)
        self._load.finish(self._now)

    def _tick(self, at: Nanoseconds) -> Nanoseconds:
        """Advance the clock to *at* and return it; note it when that is backwards."""
        if at < self._now:
            self._problems.append(f"the clock went backwards from {self._now} to {at} ns")
        else:
            self._now = at
            if at >= self._load.next_sample:
                self._load.sample_until(at)
        return self._now


def joined(*handlers: Handlers) -> dict[type, tuple[Callable[[Any], None], ...]]:
    """Return the handlers of each type, in the order of the tables."""
    types = dict.fromkeys(kind for table in handlers for kind in table)
    return {kind: tuple(table[kind] for table in handlers if kind in table) for kind in types}
