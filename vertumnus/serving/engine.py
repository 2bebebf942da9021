"""The contract of a backend: a clock and muscles, nothing that decides.

The loop calls ``next`` until every request has ended, hands what it gets to the fleet and the
control plane, and submits the jobs that come out. An engine never calls back.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from vertumnus.domain.facts import InputFact
from vertumnus.domain.jobs import AnyJob, AnyOutcome
from vertumnus.domain.units import Nanoseconds


class Engine(Protocol):
    """What the loop asks of the simulator and of the live engine alike."""

    def now(self) -> Nanoseconds:
        """Return the run's clock; 0 is the start of the run; it never goes backwards [ns]."""

    def schedule(self, fact: InputFact, at_ns: Nanoseconds) -> None:
        """Deliver *fact* from ``next`` at *at_ns*, or at once when that has passed.

        The delivered fact carries the true time of delivery in ``at``.
        """

    def submit(self, job: AnyJob) -> None:
        """Start *job*; its outcomes come from ``next``."""

    def next(self) -> InputFact | AnyOutcome | None:
        """Return what happens next, waiting for it; None when nothing is scheduled or under way.

        Equal times come in the order in which they were scheduled or submitted.
        """

    def post(self, fact: InputFact) -> None:
        """Deliver *fact* from ``next`` as soon as possible; safe to call from another thread."""

    def close(self) -> None:
        """Stop everything that the engine started; safe to call twice."""


@runtime_checkable
class WaitingEngine(Engine, Protocol):
    """An engine whose ``next`` may wait for the wall clock."""

    before_wait: Callable[[], object]
    """Called by ``next`` before it waits, and now and then while it does, in the same thread."""
