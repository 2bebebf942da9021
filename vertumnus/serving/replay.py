"""Redo the decisions of a log without an engine; the first difference, if any (D9).

Two replays, both exact: recorded facts through a fresh control plane must give the recorded orders;
recorded inputs through a fresh fleet and control plane must give every recorded fact and order.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, cast

from msgspec.structs import replace

from vertumnus.domain.codec import INPUT, ORDER, Body, Record
from vertumnus.domain.errors import InvariantError, ProtocolError, VertumnusError
from vertumnus.domain.facts import AnyFact, InputFact
from vertumnus.domain.jobs import AnyOutcome, Outcome
from vertumnus.domain.orders import AnyOrder, Reclaim, Transfer
from vertumnus.domain.units import to_seconds
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.serving.loop import Loop
from vertumnus.serving.silent import SilentEngine
from vertumnus.workers.fleet import Fleet


class Difference(NamedTuple):
    """Where a replay first left the log."""

    place: int
    """Number of the record in the log, from 0."""
    recorded: Record | None
    """What the log has there; None past its end."""
    replayed: Record | None
    """What the replay did there; None where it did nothing more."""


class ReplayStopped(VertumnusError):
    """An event of the log that fleet or control plane cannot take, as that of a run that failed in it."""

    def __init__(self, event: AnyFact | AnyOutcome, error: Exception) -> None:
        """Name the *event*, its time and the *error* that it ended in."""
        super().__init__(
            f"the replay stopped at {to_seconds(event.at):.3f} s, at {type(event).__name__}: "
            f"{type(error).__name__}: {error}"
        )


def replay_facts(records: Iterable[Record], control: ControlPlane) -> Difference | None:
    """Feed the recorded facts to a fresh *control* and compare its orders with the recorded ones.

    Raises ReplayStopped.
    """
    expected = [Record(ORDER, order) for order in control.start()]
    for place, record in enumerate(records):
        if record.source == ORDER:
            replayed = expected.pop(0) if expected else None
            if not _agree(record, replayed):
                return Difference(place, record, replayed)
        elif expected:
            return Difference(place, record, expected[0])
        elif not isinstance(record.body, Outcome):
            expected = [Record(ORDER, order) for order in _orders(control, cast(AnyFact, record.body))]
    return None


def _orders(control: ControlPlane, fact: AnyFact) -> list[AnyOrder]:
    try:
        return control.handle(fact)
    except Exception as error:
        raise ReplayStopped(fact, error) from error


def replay_inputs(records: Iterable[Record], fleet: Fleet, control: ControlPlane) -> Difference | None:
    """Feed the recorded inputs to a fresh *fleet* and *control* and compare everything that they say.

    A log whose end was cut off in the middle of an event replays without a difference up to there. Raises
    ReplayStopped.
    """
    comparison = _Comparison(iter(records))
    loop = redo(fleet, control, comparison.record)
    while comparison.difference is None:
        event = comparison.next_input()
        if event is None:
            break
        loop.take(event)
    return comparison.difference


def redo(fleet: Fleet, control: ControlPlane, record: Callable[[int, Body], object]) -> Loop:
    """Return a loop, started, whose events are a log's inputs, given to its ``take`` one by one.

    Between two of them *fleet* and *control* are what they were in the run at that point. ``take`` raises
    ReplayStopped for an event that they cannot take.
    """
    loop = _Redone(SilentEngine(), fleet, control, record)
    loop.start()
    return loop


class _Redone(Loop):
    """A loop that says which event it could not take."""

    def take(self, event: InputFact | AnyOutcome) -> None:
        """Deliver one event and everything that it causes. Raises ReplayStopped."""
        try:
            super().take(event)
        except (ProtocolError, InvariantError) as error:
            raise ReplayStopped(event, error) from error
        except VertumnusError:  # of who is told the records
            raise
        except Exception as error:
            raise ReplayStopped(event, error) from error


class _Comparison:
    """Holds the log against what the replay says, record by record."""

    def __init__(self, records: Iterator[Record]) -> None:
        self._records = records
        self._place = -1
        self._ahead: Record | None = None
        self.difference: Difference | None = None

    def next_input(self) -> InputFact | AnyOutcome | None:
        """Return the log's next input; anything else there is a difference."""
        self._ahead = next(self._records, None)
        if self._ahead is None:
            return None
        if self._ahead.source != INPUT:
            self.difference = Difference(self._place + 1, self._ahead, None)
            return None
        return cast(InputFact | AnyOutcome, self._ahead.body)

    def record(self, source: int, body: Body) -> None:
        """Compare one record of the replay with the log's next one."""
        if self.difference is not None:
            return
        self._place += 1
        recorded = self._ahead if self._ahead is not None else next(self._records, None)
        self._ahead = None
        replayed = Record(source, body)
        if recorded is not None and not _agree(recorded, replayed):
            self.difference = Difference(self._place, recorded, replayed)


def _agree(recorded: Record, replayed: Record | None) -> bool:
    """Return whether the replay says what the log does, which may be from before origins were noted."""
    if replayed is None or recorded == replayed:
        return recorded == replayed
    before, now = recorded.body, replayed.body
    is_older = isinstance(before, Transfer | Reclaim) and before.origin is None
    return is_older and isinstance(now, Transfer | Reclaim) and before == replace(now, origin=None)
