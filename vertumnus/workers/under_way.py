"""The jobs that the engine has: what each one is, and since when."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vertumnus.domain.jobs import AnyJob, AnyOutcome, FirstToken, HandoffDone, StopJob
from vertumnus.domain.units import JobId, Nanoseconds


class JobUnderWay(NamedTuple):
    """A job without its last outcome."""

    job: AnyJob
    since_ns: Nanoseconds


class JobsUnderWay:
    """Jobs in the order in which they began; one that was lost stays until the engine says so."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, JobUnderWay] = {}

    def __iter__(self) -> Iterator[JobUnderWay]:
        return iter(self._jobs.values())

    def begin(self, jobs: Iterable[AnyJob], now: Nanoseconds) -> None:
        """Note jobs that start at *now*; the wish to stop one is no job of its own."""
        for job in jobs:
            if type(job) is not StopJob:
                self._jobs[job.job_id] = JobUnderWay(job, now)

    def conclude(self, outcome: AnyOutcome) -> None:
        """Note an outcome; a hand-off has two before its last one."""
        if type(outcome) is not HandoffDone and type(outcome) is not FirstToken:
            self._jobs.pop(outcome.job_id, None)
