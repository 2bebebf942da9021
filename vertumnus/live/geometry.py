"""Which worker and epoch each prefill rank was told last, and whose acknowledgement is awaited (sec. 8).

The coordinator's half of the rule that no step mixes geometries: an epoch is newer than the one before,
a rank acknowledges one before it is told another, and it gets no step in between.
"""

from collections.abc import Iterable

from vertumnus.domain.cluster import CpGroup, Lattice
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.jobs import AdoptJob
from vertumnus.domain.units import Epoch, JobId, Rank
from vertumnus.live.messages import Adopt


class Geometry:
    """The control records of all prefill ranks."""

    def __init__(self, lattice: Lattice, workers: Iterable[CpGroup], epoch: Epoch) -> None:
        """Start from *workers*, which every rank runs under *epoch*."""
        self._groups = frozenset(lattice.groups())
        self._epochs = {rank: epoch for worker in workers for rank in worker.ranks}
        self._awaited: dict[Rank, JobId] = {}

    def __len__(self) -> int:
        """Acknowledgements that are still to come."""
        return len(self._awaited)

    def begin(self, job: AdoptJob) -> Adopt:
        """Return the record that tells a rank its new worker and epoch.

        Raises ProtocolError for a worker or epoch that cannot follow; nothing has changed then.
        """
        self.require_settled(job.rank)
        if job.worker not in self._groups or job.rank not in job.worker.ranks:
            raise ProtocolError(f"rank {job.rank} cannot adopt {job.worker}, a group it cannot be in")
        if job.epoch <= self._epochs[job.rank]:
            raise ProtocolError(
                f"rank {job.rank} cannot adopt epoch {job.epoch} after epoch {self._epochs[job.rank]}"
            )
        self._epochs[job.rank] = job.epoch
        self._awaited[job.rank] = job.job_id
        return Adopt(job.job_id, job.worker, job.epoch)

    def require_settled(self, rank: Rank) -> None:
        """Raise ProtocolError while *rank* has not acknowledged what it was told."""
        if rank in self._awaited:
            raise ProtocolError(f"rank {rank} has not yet acknowledged epoch {self._epochs[rank]}")

    def acknowledge(self, rank: Rank, job_id: JobId) -> None:
        """Take a rank's answer. Raises ProtocolError for one that nobody waits for."""
        if self._awaited.get(rank) != job_id:
            raise ProtocolError(f"rank {rank} acknowledged job {job_id}, which it does not owe")
        del self._awaited[rank]

    def lose(self, rank: Rank) -> JobId | None:
        """Stop waiting for a rank that is gone; return the job that ends with it, if any."""
        return self._awaited.pop(rank, None)
