"""Copies between prefill ranks under way: from the job to the last destination's confirmation.

Rules: a copy is told as done when every destination rank has all its blocks, and as failed only when no
destination can write any more, since its slots are given to others then. Where memory is shared only
destinations take part, and what a lost rank left there is still good.
"""

from collections.abc import Iterator
from typing import NamedTuple

from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.jobs import CopyJob
from vertumnus.domain.units import JobId, Nanoseconds, Rank, SlotId
from vertumnus.domain.wording import counted
from vertumnus.live.messages import Copy, Peer
from vertumnus.live.posting import Posting


class CopyResult(NamedTuple):
    """What became of a copy."""

    job_id: JobId
    failure: str | None
    """Why not every block arrived; the numbers below mean nothing then."""
    blocks: int
    wire_ns: Nanoseconds
    """Of the slowest destination."""


class _OpenCopy:
    """A copy that a destination has not answered."""

    def __init__(self, job: CopyJob, destinations: set[Rank], pairs: set[tuple[Rank, Rank]]) -> None:
        self.job = job
        self.silent = destinations
        self.pairs = pairs
        """Ranks that exchange messages for it, the lower one first."""
        self.failures: list[str] = []
        self.is_incomplete = False
        self.wire_ns = 0

    def result(self) -> CopyResult:
        failure = "; ".join(self.failures) if self.is_incomplete else None
        return CopyResult(self.job.job_id, failure, len(self.job.moves), self.wire_ns)


class CopyBook:
    """Every copy that has not ended."""

    def __init__(self, ranks: int, blocks_per_rank: int, *, by_transfer: bool) -> None:
        self._ranks = ranks
        self._blocks_per_rank = blocks_per_rank
        self._by_transfer = by_transfer
        self._open: dict[JobId, _OpenCopy] = {}
        self._failed_pairs: dict[tuple[Rank, Rank], int] = {}

    def __len__(self) -> int:
        """Copies that have not ended."""
        return len(self._open)

    def participants(self, job: CopyJob) -> list[Rank]:
        """Return the ranks without which *job* cannot be done, ascending.

        Raises ProtocolError for slots that there are not, or destinations outside the job's worker.
        """
        if not job.moves:
            raise ProtocolError(f"copy {job.job_id} moves nothing")
        for source, destination in job.moves:
            if not 0 <= self._owner(source) < self._ranks or self._owner(destination) not in job.worker.ranks:
                raise ProtocolError(
                    f"copy {job.job_id}: slot {source} to slot {destination} does not end in {job.worker}, "
                    f"or does not begin in the pool of {counted(self._ranks, 'rank')}"
                )
        ranks = {self._owner(destination) for _, destination in job.moves}
        if self._by_transfer:
            ranks |= {self._owner(source) for source, _ in job.moves}
        return sorted(ranks)

    def begin(self, job: CopyJob) -> list[Posting]:
        """Open *job* and return what its participants are told."""
        destinations = {self._owner(destination) for _, destination in job.moves}
        pairs = set(self._pairs(job)) if self._by_transfer else set()
        self._open[job.job_id] = _OpenCopy(job, destinations, pairs)
        return [self._part_of(rank, job, pairs) for rank in self.participants(job)]

    def copied(self, job_id: JobId, rank: Rank, wire_ns: Nanoseconds) -> CopyResult | None:
        """Take a destination's confirmation; return the result when it was the last one awaited."""
        copy = self._open.get(job_id)
        if copy is None or rank not in copy.silent:
            raise ProtocolError(f"rank {rank} confirmed copy {job_id}, which it does not owe")
        copy.wire_ns = max(copy.wire_ns, wire_ns)
        return self._settle(copy, rank)

    def failed(self, job_id: JobId, rank: Rank, reason: str) -> CopyResult | None:
        """Take a participant's failure, after which it writes nothing more; return the result if any."""
        copy = self._open.get(job_id)
        return None if copy is None else self._fail(copy, rank, f"prefill rank {rank}: {reason}")

    def lose(self, rank: Rank, reason: str) -> Iterator[CopyResult]:
        """Take a lost rank out of its copies; yield those that end with it."""
        for copy in list(self._open.values()):
            if rank in copy.silent or any(rank in pair for pair in copy.pairs):
                result = self._fail(copy, rank, f"prefill rank {rank} lost: {reason}")
                if result is not None:
                    yield result

    def _fail(self, copy: _OpenCopy, rank: Rank, failure: str) -> CopyResult | None:
        copy.failures.append(failure)
        copy.is_incomplete |= rank in copy.silent  # a source's trouble shows at its destinations, if at all
        return self._settle(copy, rank)

    def _settle(self, copy: _OpenCopy, rank: Rank) -> CopyResult | None:
        copy.silent.discard(rank)
        if copy.silent:
            return None
        del self._open[copy.job.job_id]
        if copy.failures:  # their groups may be dead: the next copy meets under a new prefix
            for pair in copy.pairs:
                self._failed_pairs[pair] = self._failed_pairs.get(pair, 0) + 1
        return copy.result()

    def _part_of(self, rank: Rank, job: CopyJob, pairs: set[tuple[Rank, Rank]]) -> Posting:
        """Return what *rank* has to know of *job*."""
        moves = tuple(move for move in job.moves if self._takes_part(rank, move))
        peers = tuple(
            (low + high - rank, self._failed_pairs.get((low, high), 0))
            for low, high in sorted(pairs)
            if rank in (low, high)
        )
        return Posting(Peer("prefill", rank, transfers=True), Copy(job.job_id, moves, peers))

    def _takes_part(self, rank: Rank, move: tuple[SlotId, SlotId]) -> bool:
        source, destination = map(self._owner, move)
        return rank == destination or (self._by_transfer and rank == source)

    def _pairs(self, job: CopyJob) -> Iterator[tuple[Rank, Rank]]:
        for move in job.moves:
            low, high = sorted(map(self._owner, move))
            if low != high:
                yield low, high

    def _owner(self, slot: SlotId) -> Rank:
        return slot // self._blocks_per_rank
