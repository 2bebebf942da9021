"""The books of a stored run: its log replayed against fresh state machines (D9)."""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import NamedTuple

from vertumnus.domain.codec import Record
from vertumnus.domain.errors import ConfigError
from vertumnus.records.log import read_log
from vertumnus.records.run_dir import RunDir, RunEnd
from vertumnus.run.pool import pool_of
from vertumnus.serving.replay import Difference, ReplayStopped, replay_facts, replay_inputs


class Audit(NamedTuple):
    """What a replay of a run's log found."""

    records: int
    truncated: bool
    """Whether the log's end is cut off, as that of a killed run may be; everything before it was audited."""
    facts: Difference | ReplayStopped | None
    """First difference when facts go through a fresh control plane, or where it stopped."""
    inputs: Difference | ReplayStopped | None
    """First difference when inputs go through a fresh fleet and control plane, or where it stopped."""
    problems: tuple[str, ...]
    """What does not balance at the end of the replay."""
    open_requests: int
    """Requests that had not ended there: their work is reserved and their blocks are pinned."""

    @property
    def is_clean(self) -> bool:
        """Whether both replays gave the recorded decisions and the books balance."""
        return self.facts is None and self.inputs is None and not self.problems


def audit_run(run: RunDir) -> Audit:
    """Replay the log of *run* twice.

    Raises ConfigError when it has no log that this version can replay, or one that is empty or damaged.
    """
    header, records = read_log(run.log)
    counted = _Counted(records)
    facts = _found(lambda: replay_facts(counted, pool_of(header).control))
    for _ in counted:  # to the end, whatever was found
        pass
    if not counted.records:
        raise ConfigError(f"{run.log}: holds no records, there is nothing to replay")
    pool = pool_of(header)
    with closing(read_log(run.log).records) as again:
        inputs = _found(lambda: replay_inputs(again, pool.fleet, pool.control))
    still_open = pool.fleet.open_requests
    if isinstance(inputs, ReplayStopped):  # in the middle of an event, where nothing needs to balance
        problems: tuple[str, ...] = ("unknown, the replay stopped",)
    else:
        problems = (*_lost(run.end(), records.truncated, still_open), *pool.books().problems)
    return Audit(
        records=counted.records,
        truncated=records.truncated,
        facts=facts,
        inputs=inputs,
        problems=problems,
        open_requests=still_open,
    )


def _found(replay: Callable[[], Difference | None]) -> Difference | ReplayStopped | None:
    try:
        return replay()
    except ReplayStopped as stop:
        return stop


def _lost(end: RunEnd | None, is_torn: bool, still_open: int) -> Iterator[str]:
    """Yield why the log of a run that ended is not all of it."""
    if end is not None and is_torn:
        yield "the log's last records are lost, although the run ended"
    if end is not None and end.verdict == "VALID" and still_open:
        yield "requests are open in the log, although the run ended VALID"


class _Counted(Iterator[Record]):
    def __init__(self, source: Iterator[Record]) -> None:
        self._source = source
        self.records = 0

    def __next__(self) -> Record:
        record = next(self._source)
        self.records += 1
        return record
