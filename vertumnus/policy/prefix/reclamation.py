"""Which replicas are deleted at a scan: the least reused first, where memory is scarce (sec. 7.2).

A replica goes only while another one is left anywhere, only from the leaves of what its worker holds, and
not while it is young. The worker has the last word: it refuses what is in use or newer than what was judged.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.orders import Origin, Reclaim
from vertumnus.domain.units import BlockKey, Blocks, Nanoseconds
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.prefix.scan import Candidate


class Reclaimer:
    """Chooses replicas to delete and numbers the orders."""

    def __init__(self, index: PrefixIndex, operations: int, report_delay_ns: Nanoseconds = 0) -> None:
        """Choose *operations* a scan; what *index* says was so *report_delay_ns* ago."""
        self._index = index
        self._report_delay_ns = report_delay_ns
        self._operations = operations
        self._last_id = 0

    def orders(
        self,
        candidates: Sequence[Candidate],
        workers: Sequence[WorkerState],
        pressure: Mapping[CpGroup, Blocks],
        now: Nanoseconds,
    ) -> list[Reclaim]:
        """Return one order for each worker that loses replicas; *candidates* come least reused first.

        *pressure* are the blocks that each of *workers* evicted since the last scan: where it is highest,
        a slot is worth most.
        """
        if not candidates:
            return []
        holding = _by_degree(workers)
        with_children = self._index.ranks_with_children({candidate.key for candidate in candidates})
        chosen: dict[CpGroup, list[BlockKey]] = {}
        leaving: dict[BlockKey, int] = {}
        left = self._operations
        for candidate in candidates:
            if not left:
                break
            worker = self._worker(candidate, holding[candidate.degree], pressure, with_children, leaving)
            if worker is not None:
                left -= 1
                chosen.setdefault(worker, []).append(candidate.key)
                leaving[candidate.key] = leaving.get(candidate.key, 0) + 1
        return [self.order(worker, keys, "manager", now) for worker, keys in chosen.items()]

    def _worker(
        self,
        candidate: Candidate,
        workers: Sequence[WorkerState],
        pressure: Mapping[CpGroup, Blocks],
        with_children: Mapping[BlockKey | None, int],
        leaving: Mapping[BlockKey, int],
    ) -> CpGroup | None:
        """Return which of *workers*, of its degree, loses the replica; None when every one is needed."""
        holders = self._index.holders(candidate.key)
        if holders.bit_count() - leaving.get(candidate.key, 0) < 2:
            return None  # the last copy is left to ordinary eviction
        needed = with_children.get(candidate.key, 0)
        leaves = [
            state.group for state in workers if holders >> state.place & 1 and not needed & state.group.mask
        ]
        return max(leaves, key=lambda group: pressure.get(group, 0), default=None)

    def order(self, worker: CpGroup, keys: Sequence[BlockKey], origin: Origin, now: Nanoseconds) -> Reclaim:
        """Return the order that deletes *keys*, leaves first, at *worker*."""
        self._last_id += 1
        return Reclaim(self._last_id, worker, tuple(keys), now - self._report_delay_ns, origin)


def _by_degree(workers: Sequence[WorkerState]) -> Mapping[int, list[WorkerState]]:
    found: defaultdict[int, list[WorkerState]] = defaultdict(list)
    for state in workers:
        found[state.group.degree].append(state)
    return found
