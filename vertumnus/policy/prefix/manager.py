"""The global prefix manager: a scan that replicates what is wanted and reclaims what is not (sec. 7.2).

It only orders: blocks count when their copy is confirmed, and are gone when their deletion is. Requests
never wait for it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Evicted
from vertumnus.domain.orders import AnyOrder, Reclaim, Transfer
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.units import BlockKey, Blocks, Nanoseconds, Tokens
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.config import ManagerConfig
from vertumnus.policy.prefix.demand import Busy, Demand
from vertumnus.policy.prefix.destinations import Destinations
from vertumnus.policy.prefix.heat import Chosen
from vertumnus.policy.prefix.index import Node, PrefixIndex
from vertumnus.policy.prefix.ranking import Ranking, Replication
from vertumnus.policy.prefix.reclamation import Reclaimer
from vertumnus.policy.prefix.replication import Replicator
from vertumnus.policy.prefix.scan import inter_candidates, intra_candidates, reclaim_candidates
from vertumnus.policy.prefix.transfers import TransferBook

JUDGED = 2_500
"""Replicated blocks that a scan looks at for reclamation; more take several scans (a scan stays short)."""
RECLAIMABLE = 8
"""Candidates for reclamation, per operation: some are an inner block, or a last copy, by their turn."""


class PrefixManager:
    """Chooses at each scan, and sees its copies through until the next."""

    def __init__(
        self,
        config: ManagerConfig,
        pool: PoolState,
        index: PrefixIndex,
        demand: Demand,
        ledger: Ledger,
        transfers: TransferBook,
        prefill_time: PrefillTimeModel,
        *,
        scan_interval_s: float,
        block_tokens: Tokens,
        block_bytes: int,
        report_delay_ns: Nanoseconds = 0,
    ) -> None:
        self._config = config
        self._pool = pool
        self._index = index
        self._demand = demand
        self._ledger = ledger
        self._prefill_time = prefill_time
        self._block_tokens = block_tokens
        self._budget = _blocks_per_scan(config.replication_bytes_per_s, scan_interval_s, block_bytes)
        self._replicator = Replicator(
            pool,
            index,
            ledger,
            transfers,
            at_once=config.background_copies,
            blocks_per_copy=config.blocks_per_copy,
        )
        self.reclaimer = Reclaimer(index, config.operations_per_scan, report_delay_ns)
        """Numbers every reclamation, an operator's too."""
        self._judged_until = 0
        self.chosen = Chosen()
        """What the last scan chose."""
        self._evicted: dict[CpGroup, Blocks] = {}
        """Blocks that each worker evicted since the last scan: where room is scarce."""

    def note_evicted(self, worker: CpGroup, evicted: Iterable[Evicted]) -> None:
        """Note what left *worker* to make room."""
        count = sum(len(keys) for _, keys in evicted)
        self._evicted[worker] = self._evicted.get(worker, 0) + count

    def scan(self, busy: Busy, now: Nanoseconds) -> list[AnyOrder]:
        """Return what follows from the counters as they are; the caller lets them decay then."""
        unfinished = len(self._replicator)
        reclaims, replications = self._reclaim(now), self._replicate(busy)
        self._evicted.clear()
        reasons = Counter(replication.reason for replication in replications)
        reclaimed = sum(len(order.keys) for order in reclaims)
        self.chosen = Chosen(reasons["inter"], reasons["intra"], reclaimed, unfinished)
        return [*reclaims, *self._replicator.replace(replications, now)]

    def transfer_ended(self, order: Transfer, now: Nanoseconds, copied: Blocks | None) -> list[Transfer]:
        """Note that some transfer, its own or another's, has ended; return the copies that start now.

        *copied* are the leading blocks of its path that are there now; None when it failed.
        """
        return self._replicator.ended(order, now, copied)

    def _replicate(self, busy: Busy) -> list[Replication]:
        config, index = self._config, self._index
        degrees = self._degrees()
        inter = inter_candidates(index, busy, degrees) if config.inter else []
        intra = intra_candidates(index, busy, degrees, config.theta_intra) if config.intra else []
        destinations = Destinations(index, self._serving(), self._ledger.outstanding())
        ranking = Ranking(index, destinations, config.operations_per_scan, self._budget, config.theta_intra)
        if config.rank_by == "count":
            return ranking.by_count(inter, intra)
        return ranking.by_seconds([*inter, *intra], self._prefill_time, self._block_tokens)

    def _reclaim(self, now: Nanoseconds) -> list[Reclaim]:
        config = self._config
        if not config.reclaim:
            return []
        most = RECLAIMABLE * config.operations_per_scan
        candidates = reclaim_candidates(
            self._index, self._demand, self._judged(), config.theta_reclaim, config.grace_scans, most
        )
        return self.reclaimer.orders(candidates, self._serving(), self._evicted, now)

    def _judged(self) -> list[tuple[BlockKey, Node]]:
        """Return the replicated blocks that this scan judges: all, or where they are many the next part."""
        replicated = self._index.replicated()
        if len(replicated) <= JUDGED:
            return list(replicated.items())
        first = self._judged_until % len(replicated)
        self._judged_until = first + JUDGED
        return list(islice(replicated.items(), first, first + JUDGED))

    def _serving(self) -> list[WorkerState]:
        return [state for state in self._pool.workers.values() if state.is_serving]

    def _degrees(self) -> Sequence[int]:
        return sorted({state.group.degree for state in self._serving()})


def _blocks_per_scan(bytes_per_s: float | None, scan_interval_s: float, block_bytes: int) -> Blocks | None:
    """Return the blocks that may be copied in a scan interval; None when there is no bound."""
    return None if bytes_per_s is None else int(bytes_per_s * scan_interval_s / block_bytes)
