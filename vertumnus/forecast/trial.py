"""One candidate tried out: a copy of the pool, simulated from its moment on until everybody was answered.

The copy's controller is silent. The move is begun at once, as an operator would begin it: drain, redirects,
copies and the backlog of open requests come out of the simulation. Jobs under way take the time that the
profile predicts for the rest of them, whatever the engine knows of their true end.
"""

from collections.abc import Sequence

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import OperatorActed, RequestArrived, TimerFired
from vertumnus.domain.forecast import ForecastOutcome
from vertumnus.domain.move import Move
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks
from vertumnus.forecast.question import Question
from vertumnus.forecast.tally import Tally
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.serving.loop import Loop
from vertumnus.serving.patience import with_patience
from vertumnus.serving.snapshot import Restored, restore
from vertumnus.sim.engine import SimEngine

_ACTION = 0
"""Of the operator who begins the move; his pool knows no other."""


def answer(question: Question) -> tuple[ForecastOutcome, ...]:
    """Return what staying, and each of the question's moves, leads to."""
    return tuple(try_move(question, move) for move in (None, *question.moves))


def try_move(question: Question, move: Move | None) -> ForecastOutcome:
    """Return what *move*, or staying, leads to.

    Raises ConfigError with the reasons when the pool does not allow the move.
    """
    pool = restore(question.snapshot)
    pool.control.silence()
    trial = _Trial(question, pool)
    missing = 0 if move is None else missing_blocks(pool.control.index, move)
    if move is not None:
        trial.begin(move)
    trial.run(question.future, move)
    return trial.tally.outcome(move, missing)


def missing_blocks(index: PrefixIndex, move: Move) -> Blocks:
    """Return what the new workers of *move* will lack of what their sources hold [blocks].

    After a merge nothing: any ownership serves. After a split each half lacks what only the other holds.
    """
    held = sum(source.mask for source in move.sources)
    return sum(index.count_lacking(target.mask, held & ~target.mask) for target in move.targets)


class _Trial:
    """A pool with an engine of its own."""

    def __init__(self, question: Question, pool: Restored) -> None:
        now = question.snapshot.at_ns
        self._fleet, control = pool
        engine = SimEngine(question.assumptions.durations(), now)
        for job, since in self._fleet.jobs:
            engine.resume(job, since)
        self._engine = with_patience(engine, self._fleet, question.assumptions.patience_ns)
        self.tally = Tally([*self._fleet.awaiting_first_token(), *question.future], engine.now)
        self._loop = Loop(self._engine, self._fleet, control, self.tally.record)
        for timer in control.timers(now):
            engine.schedule(TimerFired(timer.at_ns, timer.name, timer.at_ns), timer.at_ns)

    def begin(self, move: Move) -> None:
        self._loop.take(OperatorActed(self._engine.now(), _ACTION, "forecast", move.kind, move.sources))
        if self.tally.refused is not None:
            raise ConfigError(self.tally.refused)

    def run(self, future: Sequence[Request], move: Move | None) -> None:
        """Go on until every request was answered and the move is through, or nothing can change that."""
        for request in future:
            self._engine.schedule(RequestArrived(request.arrival_ns, request), request.arrival_ns)
        last_ns = max((request.arrival_ns for request in future), default=0)
        while self.tally.is_waiting or (move is not None and self.tally.transition(move) is None):
            event = self._engine.next()
            if event is None or (isinstance(event, TimerFired) and self._is_stuck(last_ns)):
                return
            self._loop.take(event)

    def _is_stuck(self, last_ns: int) -> bool:
        return not self._fleet.is_busy and self._engine.now() > last_ns
