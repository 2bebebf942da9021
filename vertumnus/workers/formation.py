"""Workers that are being formed: which of their ranks have adopted the new epoch (sec. 6.2, 8)."""

from typing import NamedTuple

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Evicted
from vertumnus.domain.units import JobId, Rank
from vertumnus.workers.worker import Worker


class _Forming(Struct):
    worker: Worker
    doubles: tuple[Evicted, ...]
    waiting: set[Rank]


class Adoption(NamedTuple):
    """One rank's acknowledgement."""

    rank: Rank
    worker: Worker
    doubles: tuple[Evicted, ...] | None
    """Second copies that the new cache left out, with the last rank's acknowledgement; None before."""


class Formations:
    """Acknowledgements that are awaited."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, tuple[Rank, CpGroup]] = {}
        self._forming: dict[CpGroup, _Forming] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def begin(self, worker: Worker, doubles: tuple[Evicted, ...]) -> None:
        """Wait for every rank of *worker*."""
        self._forming[worker.group] = _Forming(worker, doubles, set(worker.group.ranks))

    def ask(self, job_id: JobId, rank: Rank, group: CpGroup) -> None:
        """Note that *job_id* asks *rank* of a worker that is forming."""
        self._jobs[job_id] = (rank, group)

    def acknowledge(self, job_id: JobId) -> Adoption | None:
        """Take a rank's answer; None when nobody waits for it."""
        rank, group = self._jobs.pop(job_id, (None, None))
        forming = None if group is None else self._forming.get(group)
        if rank is None or forming is None or forming.worker.state != "forming":
            return None
        forming.waiting.discard(rank)
        if forming.waiting:
            return Adoption(rank, forming.worker, None)
        del self._forming[forming.worker.group]
        return Adoption(rank, forming.worker, forming.doubles)

    def give_up(self, job_id: JobId) -> bool:
        """Stop waiting for a job that failed; return whether it was one of these.

        Its worker never forms: the control plane closes the transition when its time is up.
        """
        return self._jobs.pop(job_id, None) is not None
