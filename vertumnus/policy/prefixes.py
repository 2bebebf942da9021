"""The cache side of the control plane: who holds which prefix, what is copied, what is let go (sec. 7).

Index and statistics follow the workers' reports; reconciliation, pulls and the manager order copies from
one book of transfers. Copies count when they are confirmed, and are gone when that is told.
"""

from collections.abc import Callable, Mapping
from typing import Any

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import (
    AnyFact,
    ReplicasDeleted,
    StepStarted,
    TransferFailed,
    TransferFinished,
    TransferStarted,
)
from vertumnus.domain.link import LinkConfig
from vertumnus.domain.orders import AnyOrder, Transfer
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request
from vertumnus.domain.units import BlockKey, Blocks, Nanoseconds, Rank, Tokens, to_ns
from vertumnus.policy.config import CacheConfig
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.links import Links
from vertumnus.policy.placement import Offer
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.by_hand import PrefixHand
from vertumnus.policy.prefix.heat import note_scan
from vertumnus.policy.prefix.index import Match, PrefixIndex
from vertumnus.policy.prefix.manager import PrefixManager
from vertumnus.policy.prefix.pull import Puller
from vertumnus.policy.prefix.reconcile import Reconciler
from vertumnus.policy.prefix.residency import Held, Residency
from vertumnus.policy.prefix.transfers import Fetch, TransferBook
from vertumnus.policy.statistics import PrefixStatistics


class Prefixes:
    """The prefix index with everything that reads and changes it."""

    def __init__(
        self,
        config: CacheConfig,
        pool: PoolState,
        ledger: Ledger,
        prefill_time: PrefillTimeModel,
        link: LinkConfig,
        *,
        block_tokens: Tokens,
        block_bytes: int,
    ) -> None:
        self._pool = pool
        self.index = PrefixIndex(pool.groups)
        self.statistics = PrefixStatistics(config, self.index, prefill_time, block_tokens)
        self.transfers = TransferBook(pool, Links(link, block_bytes))
        self.residency = Residency(self.index, self.statistics, to_ns(config.report_delay_s))
        self.reconciler = Reconciler(self.index, self.transfers, prefill_time, block_tokens)
        self.puller = Puller(pool, self.index, self.transfers, prefill_time, block_tokens)
        self._prefetches = config.manager.prefetch
        self._is_counterfactual = config.manager.preferred_degree == "counterfactual"
        self._manager = PrefixManager(
            config.manager,
            pool,
            self.index,
            self.statistics.demand,
            ledger,
            self.transfers,
            prefill_time,
            scan_interval_s=config.scan_interval_s,
            block_tokens=block_tokens,
            block_bytes=block_bytes,
            report_delay_ns=to_ns(config.report_delay_s),
        )
        self.by_hand = PrefixHand(pool, self.index, self.transfers, self._manager.reclaimer)
        self.handlers: Mapping[type[AnyFact], Callable[[Any], list[AnyOrder]]] = {
            TransferStarted: self._transfer_started,
            TransferFinished: self._transfer_finished,
            TransferFailed: self._transfer_failed,
            ReplicasDeleted: self._replicas_deleted,
        }

    def check(self) -> None:
        """Raise InvariantError unless index and transfers are consistent."""
        self.index.check()
        self.transfers.check()

    def fetch(self, request: Request, offer: Offer, match: Match, now: Nanoseconds) -> Fetch | None:
        """Return the copy that *request*, placed by *offer*, shall wait for; None when there is none."""
        if offer.pull is not None:
            return self.puller.begin(request, offer.pull, now)
        held = match.held[self._pool.workers[offer.worker].place]
        return self.reconciler.fetch(request, offer.worker, held, match.known, now)

    def prefetch(self, request: Request, offer: Offer, match: Match, now: Nanoseconds) -> Transfer | None:
        """Return the copy that *request*, placed by *offer* without one, may find done when it starts."""
        if not self._prefetches:
            return None
        return self.puller.prefetch(request, offer.worker, match.held, offer.queue_ns, offer.service_ns, now)

    def preference(self, longest: Mapping[int, Blocks], match: Match) -> Mapping[int, Blocks]:
        """Return the leading blocks by which a preferred degree is judged (Algorithm 1), by degree.

        As published the *longest* that are there: a degree without the prefix is charged a full prefill, is
        rarely preferred, and what it misses is not counted. Counterfactually the best copy is everywhere.
        """
        return dict.fromkeys(longest, max(match.held)) if self._is_counterfactual else longest

    def made_room(self, fact: StepStarted) -> None:
        """Note what left a worker to make room for a step."""
        self.residency.report(fact.evicted, fact.at)
        self._manager.note_evicted(fact.worker, fact.evicted)

    def computed(
        self,
        worker: CpGroup,
        path: tuple[BlockKey, ...],
        first_block: Blocks,
        owners: tuple[Rank, ...] | None,
        now: Nanoseconds,
    ) -> None:
        """Note that *worker* has computed ``path[first_block:]``; None: block i is at rank i mod C."""
        if owners is None:
            owners = tuple(
                worker.first_rank + block % worker.degree for block in range(first_block, len(path))
            )
        self.residency.report((Held(path, first_block, owners),), now)

    def scan(self, now: Nanoseconds) -> list[AnyOrder]:
        """Return what follows from the counters as they are, and let them decay (Algorithm 2)."""
        busy = self.statistics.demand.busy()
        orders = self._manager.scan(busy, now)
        degrees = tuple(self._pool.serving.counts())
        note = note_scan(self.index, self.statistics.demand, busy, degrees, self._manager.chosen)
        self.statistics.scan()
        return [note, *orders]

    def _transfer_started(self, fact: TransferStarted) -> list[AnyOrder]:
        self.residency.report(fact.evicted, fact.at)
        return []

    def _transfer_finished(self, fact: TransferFinished) -> list[AnyOrder]:
        end: Blocks = fact.first_block + len(fact.owners)
        path = self.transfers.order_of(fact.transfer_id).path[:end]
        self.residency.report((Held(path, fact.first_block, fact.owners),), fact.at)
        return self._ended(fact, end)

    def _transfer_failed(self, fact: TransferFailed) -> list[AnyOrder]:
        return self._ended(fact, None)

    def _ended(self, fact: TransferFinished | TransferFailed, copied: Blocks | None) -> list[AnyOrder]:
        order = self.transfers.end(fact.transfer_id, fact.at)
        return [*self._manager.transfer_ended(order, fact.at, copied)]

    def _replicas_deleted(self, fact: ReplicasDeleted) -> list[AnyOrder]:
        self.residency.report(fact.evicted, fact.at)
        return []
