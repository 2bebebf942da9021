"""Who knows what lies in every slot from the engine's jobs alone, and looks at every reuse."""

from collections.abc import Mapping
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.jobs import AnyJob, CopyJob, StepJob, StepWork
from vertumnus.domain.request import Request
from vertumnus.domain.units import BlockKey, Epoch, Rank, RequestId, SlotId
from vertumnus.live.engine import LiveEngine


class _Written(NamedTuple):
    key: BlockKey
    epoch: Epoch
    """Of the worker that computed the block."""


class Hit(NamedTuple):
    """A request that reused blocks."""

    worker: CpGroup
    epoch: Epoch
    owners: tuple[Rank, ...]
    """The rank of each reused block."""
    written: tuple[Epoch, ...]
    """The epoch in which each of them was computed."""

    @property
    def older(self) -> tuple[Rank, ...]:
        """The ranks of those blocks that were computed before the worker was formed."""
        return tuple(r for r, epoch in zip(self.owners, self.written, strict=True) if epoch < self.epoch)


class SlotWitness:
    """A live engine whose jobs are looked at: a reused slot must hold that very block, on the right rank.

    It knows neither the prefix index nor the workers' block caches.
    """

    def __init__(self, engine: LiveEngine, requests: Mapping[RequestId, Request]) -> None:
        self.hits: list[Hit] = []
        self._engine, self._requests = engine, requests
        self._per_rank = engine.plan.blocks_per_rank
        self._block_tokens = engine.plan.block_tokens
        self._held: dict[SlotId, _Written] = {}
        self.now, self.schedule, self.post = engine.now, engine.schedule, engine.post
        self.next, self.close = engine.next, engine.close

    def submit(self, job: AnyJob) -> None:
        """Look at *job* and hand it on."""
        if isinstance(job, StepJob):
            for work in job.works:
                self._look(job, work)
        elif isinstance(job, CopyJob):
            self._held.update({target: self._held[source] for source, target in job.moves})
        self._engine.submit(job)

    def _look(self, job: StepJob, work: StepWork) -> None:
        keys = self._requests[work.request_id].block_keys or ()
        reused = work.cached_tokens // self._block_tokens
        found = [self._held[slot] for slot in work.slots[:reused]]
        owners = tuple(slot // self._per_rank for slot in work.slots[:reused])
        assert tuple(written.key for written in found) == keys[:reused]
        assert set(owners) <= set(job.worker.ranks)
        if reused:
            self.hits.append(Hit(job.worker, job.epoch, owners, tuple(written.epoch for written in found)))
        for place, slot in enumerate(work.slots[reused:], reused):
            self._held.pop(slot, None)
            if place < len(keys):
                self._held[slot] = _Written(keys[place], job.epoch)
