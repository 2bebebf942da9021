"""Hand-offs under way: from the job to the last token, and what is sent to whom in between.

A prompt's blocks first reach the decode rank's host (at once when memory is shared, by a transfer when
pairwise); then the rank is told to admit it, confirms its copy, and decodes.
"""

from collections.abc import Iterable, Iterator

from vertumnus.domain.jobs import HandoffJob
from vertumnus.domain.units import JobId, Rank, SlotId
from vertumnus.live.messages import Admit, Peer, Receive, Send, Stop
from vertumnus.live.posting import Posting


class OpenHandoff:
    """A prompt on its way to, or at, a decode rank."""

    def __init__(self, job: HandoffJob, final_hidden: bytes) -> None:
        self.job = job
        self.output_tokens = 0
        self.is_moving = False
        self._final_hidden = final_hidden
        self._is_stopped = False

    @property
    def decode_peer(self) -> Peer:
        """The decode rank's main loop."""
        return Peer("decode", self.job.decode_rank)

    def admit(self) -> Iterator[Posting]:
        """Yield what the decode rank is told once the blocks are at hand."""
        job = self.job
        self.is_moving = False
        yield Posting(
            self.decode_peer,
            Admit(job.job_id, job.input_tokens, job.output_tokens, job.slots, self._final_hidden),
        )
        if self._is_stopped:
            yield Posting(self.decode_peer, Stop(job.job_id))

    def stop(self) -> Iterator[Posting]:
        """Yield the wish to stop; while blocks move it waits, so that it follows its Admit."""
        if self.is_moving:
            self._is_stopped = True
        else:
            yield Posting(self.decode_peer, Stop(self.job.job_id))


class HandoffBook:
    """Every hand-off that has not ended."""

    def __init__(self, blocks_per_rank: int, *, by_transfer: bool) -> None:
        self._blocks_per_rank = blocks_per_rank
        self._by_transfer = by_transfer
        self._open: dict[JobId, OpenHandoff] = {}
        self._failed_pairs: dict[tuple[Rank, Rank], int] = {}

    def __len__(self) -> int:
        """Hand-offs that have not ended."""
        return len(self._open)

    def begin(self, job: HandoffJob, final_hidden: bytes) -> list[Posting]:
        """Open *job* and return its first messages."""
        handoff = self._open[job.job_id] = OpenHandoff(job, final_hidden)
        if not self._by_transfer:
            return list(handoff.admit())
        handoff.is_moving = True
        return list(self._transfer(job))

    def find(self, job_id: JobId) -> OpenHandoff | None:
        """Return an open hand-off; None when it has ended."""
        return self._open.get(job_id)

    def arrived(self, job_id: JobId, receiver: Peer) -> list[Posting]:
        """Return what follows when a transfer to *receiver* is done, its hand-off over or not."""
        handoff = self._open.get(job_id)
        return [Posting(receiver.process, Stop(job_id))] if handoff is None else list(handoff.admit())

    def stop(self, job_id: JobId) -> list[Posting]:
        """Return what stops a hand-off; nothing when it is over."""
        handoff = self._open.get(job_id)
        return [] if handoff is None else list(handoff.stop())

    def end(self, job_id: JobId) -> OpenHandoff | None:
        """Close a hand-off and return it; None when that happened before."""
        handoff = self._open.pop(job_id, None)
        if handoff is not None and handoff.is_moving:
            self._renew(self._pairs(handoff.job))
        return handoff

    def transfer_failed(self, job_id: JobId, peer: Peer) -> OpenHandoff | None:
        """Close and return the hand-off whose transfer broke at *peer*; None if all blocks had come.

        An owner's trouble after that is its own: the sequence is at its decode rank, and goes on.
        """
        handoff = self._open.get(job_id)
        if handoff is None or handoff.is_moving:
            return self.end(job_id)
        self._renew([(peer.rank, handoff.job.decode_rank)])
        return None

    def hit_by_loss(self, peer: Peer) -> list[JobId]:
        """Return the hand-offs that cannot go on without *peer*."""
        return [job_id for job_id, handoff in self._open.items() if self._needs(handoff, peer)]

    def _needs(self, handoff: OpenHandoff, peer: Peer) -> bool:
        if peer.pool == "decode":
            return handoff.job.decode_rank == peer.rank
        # what lies in shared memory outlives its rank
        return handoff.is_moving and peer.rank in self._owned(handoff.job)

    def _transfer(self, job: HandoffJob) -> Iterator[Posting]:
        """Yield the receive, then the sends: an owner must not wait for a rank that was not told."""
        owned = self._owned(job)
        generations = {owner: self._failed_pairs.get((owner, job.decode_rank), 0) for owner in owned}
        receiver = Peer("decode", job.decode_rank, transfers=True)
        yield Posting(receiver, Receive(job.job_id, tuple(generations.items()), job.slots))
        for owner, slots in owned.items():
            sender = Peer("prefill", owner, transfers=True)
            yield Posting(sender, Send(job.job_id, job.decode_rank, generations[owner], tuple(slots)))

    def _owned(self, job: HandoffJob) -> dict[Rank, list[SlotId]]:
        """Return the prompt's slots by the rank that keeps them, each in the prompt's order."""
        owned: dict[Rank, list[SlotId]] = {}
        for slot in job.slots:
            owned.setdefault(slot // self._blocks_per_rank, []).append(slot)
        return owned

    def _renew(self, pairs: Iterable[tuple[Rank, Rank]]) -> None:
        """Note that the groups of *pairs* are dead: the next transfers meet in new ones."""
        for pair in pairs:
            self._failed_pairs[pair] = self._failed_pairs.get(pair, 0) + 1

    def _pairs(self, job: HandoffJob) -> Iterator[tuple[Rank, Rank]]:
        for owner in self._owned(job):
            yield owner, job.decode_rank
