"""How busy workers were: the share of the last minute, or of its life, that each spent in steps."""

from collections import deque
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import RankLost, StepFailed, StepFinished, StepStarted, WorkerFormed
from vertumnus.domain.units import SECOND, JobId, Nanoseconds
from vertumnus.records.timeline import Handlers

SPAN_NS: Nanoseconds = 60 * SECOND
"""What "the last minute" means."""


class Step(NamedTuple):
    """A step that has ended."""

    since: Nanoseconds
    until: Nanoseconds


class Load(NamedTuple):
    """What a worker did in the last minute."""

    steps: int
    """Ended in it, or still going."""
    share: float
    """Of the time, 0..1; of its life where it was formed since."""


class Busy:
    """Fold of steps into `Load`s."""

    def __init__(self) -> None:
        self.handlers: Handlers = {
            StepStarted: self._started,
            StepFinished: self._ended,
            StepFailed: self._ended,
            RankLost: self._lost,
            WorkerFormed: self._formed,
        }
        self._going: dict[CpGroup, dict[JobId, Nanoseconds]] = {}
        """Starts of the steps that are under way."""
        self._ended_steps: dict[CpGroup, deque[Step]] = {}
        self._born: dict[CpGroup, Nanoseconds] = {}
        """When workers were formed that were not there from the start."""

    def load(self, worker: CpGroup, now: Nanoseconds) -> Load:
        """Return what *worker* did in the minute before *now*, or since it was formed."""
        begin = max(self._born.get(worker, 0), now - SPAN_NS)
        ended = [step for step in self._ended_steps.get(worker, ()) if step.until > begin]
        going = self._going.get(worker, {}).values()
        spent = sum(step.until - max(step.since, begin) for step in ended)
        spent += sum(now - max(since, begin) for since in going)
        return Load(len(ended) + len(going), spent / (now - begin) if now > begin else 0.0)

    def _started(self, fact: StepStarted) -> None:
        self._going.setdefault(fact.worker, {})[fact.step_id] = fact.at

    def _ended(self, fact: StepFinished | StepFailed) -> None:
        since = self._going.get(fact.worker, {}).pop(fact.step_id, None)
        if since is not None:
            self._keep(fact.worker, Step(since, fact.at))

    def _formed(self, fact: WorkerFormed) -> None:
        self._born[fact.worker] = fact.at

    def _lost(self, fact: RankLost) -> None:
        """End what a lost worker was at: nothing else may tell."""
        for worker, going in self._going.items():
            if fact.rank in worker.ranks:
                for since in going.values():
                    self._keep(worker, Step(since, fact.at))
                going.clear()

    def _keep(self, worker: CpGroup, step: Step) -> None:
        ended = self._ended_steps.setdefault(worker, deque())
        ended.append(step)
        while ended[0].until <= step.until - SPAN_NS:
            ended.popleft()
