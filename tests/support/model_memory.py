"""Block slots as ranks would have them: jobs write them, and some jobs leave rubbish behind."""

from collections.abc import Iterable
from itertools import count

from vertumnus.domain.facts import InputFact
from vertumnus.domain.jobs import AnyJob, AnyOutcome, CopyDone, CopyJob, StepDone, StepJob
from vertumnus.domain.units import JobId, SlotId
from vertumnus.serving.engine import Engine


class ModelMemory:
    """An engine whose jobs change bytes: rubbish in what they write until they are done, then the result.

    No two steps write equal blocks, so a copy of the wrong one shows.
    """

    def __init__(self, engine: Engine, block_tokens: int) -> None:
        self.slots: dict[SlotId, bytes] = {}
        self.lost_copies = 0
        """So many copies from now on are told done and leave rubbish."""
        self._engine = engine
        self._block_tokens = block_tokens
        self._open: dict[JobId, StepJob | CopyJob] = {}
        self._numbers = count()
        self.now, self.schedule, self.post, self.close = (
            engine.now,
            engine.schedule,
            engine.post,
            engine.close,
        )

    def digests(self, slots: Iterable[SlotId]) -> dict[SlotId, bytes]:
        """Return what lies in each of *slots*."""
        return {slot: self.slots.get(slot, b"") for slot in slots}

    def submit(self, job: AnyJob) -> None:
        if isinstance(job, StepJob | CopyJob):
            self._open[job.job_id] = job
            self._write(job)
        self._engine.submit(job)

    def next(self) -> InputFact | AnyOutcome | None:
        told = self._engine.next()
        job = self._open.pop(told.job_id, None) if isinstance(told, StepDone | CopyDone) else None
        if isinstance(job, StepJob):
            self._write(job)
        elif isinstance(job, CopyJob) and not self.lost_copies:
            self.slots |= {destination: self.slots[source] for source, destination in job.moves}
        elif job is not None:
            self.lost_copies -= 1
        return told

    def _write(self, job: StepJob | CopyJob) -> None:
        if isinstance(job, CopyJob):
            written = [destination for _, destination in job.moves]
        else:
            written = [
                s for work in job.works for s in work.slots[work.cached_tokens // self._block_tokens :]
            ]
        self.slots |= {slot: f"write {next(self._numbers)}".encode() for slot in written}
