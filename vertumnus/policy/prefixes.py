"""The cache side of the control plane: who holds which prefix, what is copied, what is let go (sec. 7).

Index and statistics follow the workers' reports; reconciliation, pulls and the manager order copies from
one book of transfers. Copies count when they are confirmed, and are gone when that is told.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import (
    AnyFact,
    Evicted,
    ReplicasDeleted,
    TransferFailed,
    TransferFinished,
    TransferStarted,
)
from vertumnus.domain.link import LinkConfig
from vertumnus.domain.orders import AnyOrder
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks, Nanoseconds, Tokens
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
        self.reconciler = Reconciler(self.index, self.transfers, prefill_time, block_tokens)
        self.puller = Puller(pool, self.index, self.transfers, prefill_time, block_tokens)
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

    def held_for_preference(self, match: Match) -> Sequence[Blocks]:
        """Return the leading blocks at each worker by which a preferred degree is judged (Algorithm 1).

        As published those that are there: a degree without the prefix is charged a full prefill, is rarely
        preferred, and what it misses is not counted. Counterfactually the best copy is everywhere.
        """
        held = match.held
        return [max(held)] * len(held) if self._is_counterfactual else held

    def made_room(self, worker: CpGroup, evicted: Iterable[Evicted]) -> None:
        """Note what left *worker* to make room for a step."""
        self.evicted(evicted)
        self._manager.note_evicted(worker, evicted)

    def evicted(self, evicted: Iterable[Evicted]) -> None:
        """Note copies that are gone."""
        for rank, keys in evicted:
            self.statistics.note_unheld(self.index.evict(rank, keys))

    def lost(self, ranks: int) -> None:
        """Note that what *ranks* (a bitmask) hold is lost."""
        self.statistics.note_unheld(self.index.forget(ranks))

    def scan(self, now: Nanoseconds) -> list[AnyOrder]:
        """Return what follows from the counters as they are, and let them decay (Algorithm 2)."""
        busy = self.statistics.demand.busy()
        orders = self._manager.scan(busy, now)
        degrees = tuple(self._pool.serving.counts())
        note = note_scan(self.index, self.statistics.demand, busy, degrees, self._manager.chosen)
        self.statistics.scan()
        return [note, *orders]

    def _transfer_started(self, fact: TransferStarted) -> list[AnyOrder]:
        self.evicted(fact.evicted)
        return []

    def _transfer_finished(self, fact: TransferFinished) -> list[AnyOrder]:
        end: Blocks = fact.first_block + len(fact.owners)
        path = self.transfers.order_of(fact.transfer_id).path[:end]
        self.index.install(path, fact.first_block, fact.owners)
        return self._ended(fact, is_copied=True)

    def _transfer_failed(self, fact: TransferFailed) -> list[AnyOrder]:
        return self._ended(fact, is_copied=False)

    def _ended(self, fact: TransferFinished | TransferFailed, *, is_copied: bool) -> list[AnyOrder]:
        order = self.transfers.end(fact.transfer_id, fact.at)
        return [*self._manager.transfer_ended(order, fact.at, is_copied=is_copied)]

    def _replicas_deleted(self, fact: ReplicasDeleted) -> list[AnyOrder]:
        self.evicted(fact.evicted)
        return []
