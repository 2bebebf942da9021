"""Where a replica goes: the worker that lacks least of its path, then the least loaded (sec. 7.2)."""

from collections.abc import Sequence
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import BlockKey, Blocks, Nanoseconds
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.prefix.index import PrefixIndex


class Destination(NamedTuple):
    """A worker that could take a replica."""

    worker: CpGroup
    missing: Blocks
    """Blocks of the path from the root that would travel: the copy's footprint."""


class Destinations:
    """The workers of one scan, with what the replicas chosen so far will have brought them."""

    def __init__(
        self, index: PrefixIndex, workers: Sequence[WorkerState], loads: Sequence[Nanoseconds]
    ) -> None:
        """Choose among *workers*, which serve; *loads* are their queues, by place."""
        self._index = index
        self._loads = loads
        self._at_degree: dict[int, list[WorkerState]] = {}
        for state in workers:
            self._at_degree.setdefault(state.group.degree, []).append(state)
        self._coming: dict[CpGroup, set[BlockKey]] = {}
        self._replicas: dict[tuple[BlockKey, int], int] = {}
        """New replicas by block and degree."""

    def best(self, path: Sequence[BlockKey], degree: int) -> Destination | None:
        """Return the destination for *path* at *degree*.

        None when every worker has it, or will have it, or is too small. The paper favours a longer
        ancestor path, capacity and a low workload; the first of them decides here, then the last.
        """
        held = self._index.match(path).held
        found: list[tuple[Blocks, Nanoseconds, CpGroup]] = []
        for state in self._at_degree[degree]:
            if state.capacity_blocks >= len(path):
                missing = len(path) - self._will_hold(state.group, path, held[state.place])
                if missing:
                    found.append((missing, self._loads[state.place], state.group))
        if not found:
            return None
        missing, _, worker = min(found)
        return Destination(worker, missing)

    def add(self, path: Sequence[BlockKey], destination: Destination) -> None:
        """Count on *destination* having *path*."""
        worker, missing = destination
        coming, replicas = self._coming.setdefault(worker, set()), self._replicas
        for key in path[-missing:]:
            coming.add(key)
            replicas[key, worker.degree] = replicas.get((key, worker.degree), 0) + 1

    def workers(self, degree: int) -> int:
        """Return how many workers of *degree* there are."""
        return len(self._at_degree[degree])

    def new_replicas(self, key: BlockKey, degree: int) -> int:
        """Return how many more workers of *degree* will have the block."""
        return self._replicas.get((key, degree), 0)

    def _will_hold(self, worker: CpGroup, path: Sequence[BlockKey], held: Blocks) -> Blocks:
        coming = self._coming.get(worker)
        if coming:
            while held < len(path) and path[held] in coming:
                held += 1
        return held
