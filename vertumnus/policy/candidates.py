"""Who may serve a request (sec. 5.2): in service, and large enough for its blocks."""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import Blocks
from vertumnus.domain.wording import counted


class Excluded(NamedTuple):
    """A worker that was no candidate, and why."""

    worker: CpGroup
    reason: str


class WorkerState(Struct, gc=False):
    """A worker as the control plane knows it."""

    place: int
    """Its position in the prefix index's order."""
    group: CpGroup
    capacity_blocks: Blocks
    out_of_service: str | None = None
    """Why its ranks serve nobody any more; None while they do."""
    draining: str | None = None
    """Why it drains; None unless it takes part in a transition or an operator holds it."""
    held_by: str | None = None
    """The operator who drained it and has not reopened it."""

    @property
    def is_serving(self) -> bool:
        """Whether requests may be placed here."""
        return self.out_of_service is None and self.draining is None


def eligible(
    workers: Collection[WorkerState], needed_blocks: Blocks
) -> tuple[list[WorkerState], tuple[Excluded, ...]]:
    """Split *workers* into candidates for a prompt of *needed_blocks* and the others with the reason.

    A prefix miss excludes nobody: the missing part is recomputed.
    """
    candidates = [
        worker
        for worker in workers
        if worker.out_of_service is None
        and worker.draining is None
        and worker.capacity_blocks >= needed_blocks
    ]
    if len(candidates) == len(workers):
        return candidates, ()
    return candidates, tuple(_exclusions(workers, needed_blocks))


def _exclusions(workers: Iterable[WorkerState], needed_blocks: Blocks) -> Iterator[Excluded]:
    for worker in workers:
        if worker.out_of_service is not None:
            yield Excluded(worker.group, worker.out_of_service)
        elif worker.draining is not None:
            yield Excluded(worker.group, worker.draining)
        elif worker.capacity_blocks < needed_blocks:
            reason = f"holds {counted(worker.capacity_blocks, 'block')}, the prompt needs {needed_blocks}"
            yield Excluded(worker.group, reason)
