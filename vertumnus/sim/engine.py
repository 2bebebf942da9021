"""The simulated backend: a heap of what will happen, and a clock that jumps to the next of it."""

from heapq import heappop, heappush

from msgspec.structs import replace

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import InputFact
from vertumnus.domain.jobs import (
    Adopted,
    AdoptJob,
    AnyJob,
    AnyOutcome,
    CopyDone,
    CopyJob,
    DecodeDone,
    FirstToken,
    HandoffDone,
    HandoffJob,
    StepDone,
    StepJob,
    StopJob,
)
from vertumnus.domain.units import JobId, Nanoseconds
from vertumnus.sim.durations import Durations


class SimEngine:
    """Virtual time. Equal times come in the order in which they were scheduled or submitted."""

    def __init__(self, durations: Durations, now_ns: Nanoseconds = 0) -> None:
        self._durations = durations
        self._now = now_ns
        self._sequence = 0
        self._heap: list[tuple[Nanoseconds, int, InputFact | AnyOutcome]] = []
        self._in_free: dict[CpGroup, Nanoseconds] = {}
        self._out_free: dict[CpGroup, Nanoseconds] = {}
        """When the last copy into, or out of, each worker is over."""
        self._decoding: dict[JobId, Nanoseconds] = {}
        """When each hand-off job emits its first token, until its output is complete."""

    def now(self) -> Nanoseconds:
        """Return virtual time since the start of the run [ns]."""
        return self._now

    def schedule(self, fact: InputFact, at_ns: Nanoseconds) -> None:
        """Deliver *fact* at *at_ns*, or now when that has passed, with the true time in ``at``."""
        at_ns = max(at_ns, self._now)
        self._push(fact if fact.at == at_ns else replace(fact, at=at_ns), at_ns)

    def submit(self, job: AnyJob) -> None:
        """Put the job's outcomes where the profile says that they will be."""
        self.resume(job, self._now)

    def resume(self, job: AnyJob, since_ns: Nanoseconds) -> None:
        """Go on with a job that began at *since_ns*; what should have come of it by now comes now."""
        if type(job) is StepJob:
            took = self._durations.step(job)
            at = max(self._now, since_ns + took)
            self._push(StepDone(at, job.job_id, took), at)
        elif type(job) is HandoffJob:
            self._decode(job, since_ns)
        elif type(job) is CopyJob:
            self._copy(job, since_ns)
        elif type(job) is AdoptJob:
            at = max(self._now, since_ns + self._durations.adopt(job))
            self._push(Adopted(at, job.job_id), at)
        elif type(job) is StopJob:
            self._stop(job)

    def next(self) -> InputFact | AnyOutcome | None:
        """Return the next thing on the heap and move the clock to it."""
        while self._heap:
            at, _, body = heappop(self._heap)
            if type(body) is DecodeDone and self._decoding.pop(body.job_id, None) is None:
                continue  # it was stopped before
            self._now = at
            return body
        return None

    @property
    def next_ns(self) -> Nanoseconds | None:
        """When `next` will happen; None when nothing will."""
        while self._heap:
            at, _, body = self._heap[0]
            if type(body) is not DecodeDone or body.job_id in self._decoding:
                return at
            heappop(self._heap)  # it was stopped before
        return None

    def post(self, fact: InputFact) -> None:
        """Deliver *fact* now."""
        self.schedule(fact, self._now)

    def close(self) -> None:
        """Nothing was started."""

    def _copy(self, job: CopyJob, since_ns: Nanoseconds) -> None:
        """Let the copy follow those before it on each of its links: one at a time in each direction."""
        ready = max(since_ns, self._in_free.get(job.worker, 0))
        for source in job.sources:
            ready = max(ready, self._out_free.get(source, 0))
        payload, took = self._durations.copy(len(job.moves))
        end = self._in_free[job.worker] = max(self._now, ready + took)
        self._out_free.update(dict.fromkeys(job.sources, end))
        self._push(CopyDone(end, job.job_id, payload, took), end)

    def _decode(self, job: HandoffJob, since_ns: Nanoseconds) -> None:
        now, durations = self._now, self._durations
        arrived = since_ns + durations.handoff(job.input_tokens)
        first = max(now, arrived + durations.decode(1))
        last = max(now, arrived + durations.decode(job.output_tokens))
        self._decoding[job.job_id] = first
        self._push(HandoffDone(max(now, arrived), job.job_id), max(now, arrived))
        self._push(FirstToken(first, job.job_id), first)
        self._push(DecodeDone(last, job.job_id, job.output_tokens), last)

    def _stop(self, job: StopJob) -> None:
        first = self._decoding.pop(job.job_id, None)
        if first is not None:
            made = 0
            if self._now >= first:
                made = 1 + (self._now - first) // max(1, self._durations.decode(1))
            self._decoding[job.job_id] = first
            self._push(DecodeDone(self._now, job.job_id, made), self._now)

    def _push(self, body: InputFact | AnyOutcome, at_ns: Nanoseconds) -> None:
        self._sequence += 1
        heappush(self._heap, (at_ns, self._sequence, body))
