"""What lies in every block slot, by the jobs that the engine was given: steps write, copies repeat.

It knows neither the prefix index nor the workers' caches, so those can be held against it.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from vertumnus.domain.jobs import AnyJob, AnyOutcome, CopyDone, CopyJob, StepDone, StepJob, StepWork
from vertumnus.domain.units import BlockKey, JobId, RequestId, SlotId, Tokens


class Contents(Struct):
    """One block as a step wrote it; every copy of it shares this record, and must share its bytes."""

    key: BlockKey
    digest: bytes | None = None
    """Of the first slot that it was read from, right after the step; None until then."""


class SlotTable:
    """The contents of every slot whose last write is known."""

    def __init__(self, block_tokens: Tokens) -> None:
        self._block_tokens = block_tokens
        self._keys: dict[RequestId, Sequence[BlockKey]] = {}
        self._held: dict[SlotId, Contents] = {}
        self._writing: dict[JobId, dict[SlotId, Contents]] = {}
        """What lies in the slots of a job once that is done."""
        self._unread: dict[SlotId, Contents] = {}

    def arrived(self, request: RequestId, keys: Sequence[BlockKey]) -> None:
        """Note the keys of a request's whole blocks."""
        self._keys[request] = keys

    def ended(self, request: RequestId) -> None:
        """Forget a request; what it wrote stays."""
        self._keys.pop(request, None)

    def submitted(self, job: AnyJob) -> None:
        """Note what *job* will write; from now on nothing is known of those slots."""
        if isinstance(job, StepJob):
            writes = {slot: contents for work in job.works for slot, contents in self._computed(work)}
            overwritten = [slot for work in job.works for slot in self._written_slots(work)]
        elif isinstance(job, CopyJob):
            writes = {to: self._held[source] for source, to in job.moves if source in self._held}
            overwritten = [to for _, to in job.moves]
        else:
            return
        self._writing[job.job_id] = writes
        for slot in overwritten:
            self._held.pop(slot, None)
            self._unread.pop(slot, None)

    def concluded(self, outcome: AnyOutcome) -> None:
        """Note that what a job was to write lies in its slots, or never will."""
        writes = self._writing.pop(outcome.job_id, None)
        if writes is None or not isinstance(outcome, StepDone | CopyDone):
            return
        self._held.update(writes)
        if isinstance(outcome, StepDone):
            self._unread.update(writes)

    def contents(self, slot: SlotId) -> Contents | None:
        """Return what lies in *slot*; None when nothing whole was ever written there."""
        return self._held.get(slot)

    @property
    def unread(self) -> Sequence[SlotId]:
        """Slots that steps have written and nobody has read."""
        return tuple(self._unread)

    def read(self, digests: Mapping[SlotId, bytes]) -> None:
        """Take what ranks found in the unread slots; what a lost rank wrote stays unknown."""
        for slot, contents in self._unread.items():
            contents.digest = digests.get(slot)
        self._unread.clear()

    def _computed(self, work: StepWork) -> Iterator[tuple[SlotId, Contents]]:
        """Yield the whole blocks that *work* computes; the rest of its slots is of no later use."""
        reused = work.cached_tokens // self._block_tokens
        for slot, key in zip(self._written_slots(work), self._keys[work.request_id][reused:], strict=False):
            yield slot, Contents(key)

    def _written_slots(self, work: StepWork) -> Sequence[SlotId]:
        return work.slots[work.cached_tokens // self._block_tokens :]
