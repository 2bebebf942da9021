"""All that the console keeps of a run beside its pool, told record by record."""

from collections import deque
from typing import Any, NamedTuple

from vertumnus.domain.codec import ORDER, Body
from vertumnus.domain.orders import NoteWindow
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.config import PolicyConfig
from vertumnus.policy.placement import Decision
from vertumnus.records.cache_ops import CacheOpList
from vertumnus.records.clock import Clock
from vertumnus.records.faults import FaultList
from vertumnus.records.folds import joined
from vertumnus.records.log import LogHeader
from vertumnus.records.reconfigs import ReconfigList
from vertumnus.records.timeline import Handlers
from vertumnus_console.acts import Acts
from vertumnus_console.aftermath import Aftermath
from vertumnus_console.busy import Busy
from vertumnus_console.losses import Losses
from vertumnus_console.residuals import Residuals
from vertumnus_console.totals import Totals

TAPE = 400
"""Newest records that are kept for the log screen."""
DECISIONS = 200
"""Newest placements that are kept."""
CANDIDATES = 64
"""The cheapest candidates of a placement that are kept; a copy of all of 512 workers' takes a second."""
NOTES = 50
"""Newest windows that are kept."""


class Told(NamedTuple):
    """One record with the time at which it was told; orders carry none."""

    t_ns: Nanoseconds
    source: int
    body: Body


class Choice(NamedTuple):
    """One placement."""

    decision: Decision
    """With the cheapest candidates, `CANDIDATES` of them."""
    policy: PolicyConfig
    """With the parameters that were in force."""
    dearer: int = 0
    """Candidates that are left out: they cost more than those that `decision` has."""


class Folds:
    """Folds of one run; copied whole when the replay keeps an instant to come back to."""

    def __init__(self, header: LogHeader) -> None:
        self.totals = Totals(header.block_tokens, live=header.backend == "live")
        self.acts = Acts(_speed(header))
        self.busy = Busy()
        self.residuals = Residuals(header.profile.prefill_time())
        self.tape: deque[Told] = deque(maxlen=TAPE)
        self.choices: deque[Choice] = deque(maxlen=DECISIONS)
        self._clock = Clock()
        self.faults = FaultList(self._clock)
        self.reconfigs = ReconfigList(self._clock)
        self.cache_ops = CacheOpList(self._clock)
        self.losses = Losses()
        self.aftermath = Aftermath(self.totals, self._clock)
        self.notes: deque[NoteWindow] = deque(maxlen=NOTES)
        """Newest windows of the controller, oldest first."""
        own: Handlers = {NoteWindow: self.notes.append}
        self._handlers = joined(
            *self.totals.tables,
            self.faults.handlers,
            self.losses.handlers,
            self.acts.handlers,
            self.busy.handlers,
            self.residuals.handlers,
            self.reconfigs.handlers,
            self.cache_ops.handlers,
            self.aftermath.handlers,
            own,
        )

    def tell(self, source: int, body: Body) -> None:
        """Take one input, fact or order, in the order in which they were told."""
        timed: Any = body
        if source != ORDER:
            self._clock.now = timed.at
        self.tape.append(Told(self._clock.now, source, body))
        for handler in self._handlers.get(type(body), ()):
            handler(timed)

    def observe(self, decision: Decision, policy: PolicyConfig) -> None:
        """Take one placement, made with the parameters of *policy*."""
        self.choices.append(_choice(decision, policy))


def _choice(decision: Decision, policy: PolicyConfig) -> Choice:
    """Return *decision* without its dearest candidates, if there are many; the chosen one stays."""
    offers, costs, chosen = decision.offers, decision.costs, decision.chosen
    dearer = len(offers) - CANDIDATES
    if dearer <= 0:
        return Choice(decision, policy)

    def rank(place: int) -> tuple[bool, bool, int]:
        cost = costs[place]
        return place != chosen, cost is None, cost or 0

    kept = sorted(sorted(range(len(offers)), key=rank)[:CANDIDATES])
    shorter = decision._replace(
        offers=tuple(offers[place] for place in kept),
        costs=tuple(costs[place] for place in kept),
        chosen=None if chosen is None else kept.index(chosen),
    )
    return Choice(shorter, policy, dearer)


def _speed(header: LogHeader) -> float | None:
    backend = header.config.get("backend", {})
    return float(backend.get("speed") or 1.0) if backend.get("clock") == "paced" else None
