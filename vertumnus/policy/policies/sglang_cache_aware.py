"""Cache-aware routing with balance thresholds, after SGLang's router, as a policy on our cost model.

Not that system. The router knows prefixes from its own choices only: a tree that each placement feeds
and nothing corrects. It follows the tree while the pool is balanced, else the shortest queue.
"""

from collections import OrderedDict
from collections.abc import Sequence

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.request import Request
from vertumnus.domain.units import BlockKey, Blocks, Nanoseconds
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.placement import Offer


class SglangCacheAwarePolicy(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="name", tag="sglang_cache_aware"
):
    """The worker whose tree matches most; the shortest queue when the pool is out of balance."""

    cache_threshold: float = 0.3
    """Share of a prompt's blocks that must match to follow the tree; else the smallest tree is taken."""
    balance_abs: int = 64
    """Out of balance when the longest and the shortest queue differ by more [requests], ..."""
    balance_rel: float = 1.5
    """... and the longest is more than this many times the shortest."""
    tree_blocks: int = 32_768
    """Blocks that a worker's tree remembers; the least recently routed leave."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.cache_threshold <= 1.0:
            raise ValueError(f"cache_threshold must be in [0, 1], got {self.cache_threshold}")
        if self.balance_abs < 0:
            raise ValueError(f"balance_abs must be at least 0, got {self.balance_abs}")
        if not 1.0 <= self.balance_rel < float("inf"):
            raise ValueError(f"balance_rel must be at least 1, got {self.balance_rel}")
        if self.tree_blocks < 1:
            raise ValueError(f"tree_blocks must be at least 1, got {self.tree_blocks}")


class SglangCacheAwareCosts:
    """Costs over the trees that the choices so far have fed, and the choice that feeds them next."""

    def __init__(self, policy: SglangCacheAwarePolicy, ledger: Ledger) -> None:
        self._policy = policy
        self._ledger = ledger
        self._trees: dict[CpGroup, OrderedDict[BlockKey, None]] = {}

    def __call__(self, request: Request, offers: Sequence[Offer]) -> list[Nanoseconds | None]:
        """Return requests, or blocks of a tree, for the offers that the rule may take."""
        workers = [offer.worker for offer in offers]
        keys = request.block_keys or ()
        queues = [self._queue(worker) for worker in workers]
        costs = queues if self._is_unbalanced(queues) else self._by_tree(keys, workers, queues)
        least = min(cost for cost in costs if cost is not None)
        taken = [worker for worker, cost in zip(workers, costs, strict=True) if cost == least]
        self._feed(min(taken, key=lambda worker: (worker.degree, worker.first_rank)), keys)
        return costs

    def _queue(self, worker: CpGroup) -> int | None:
        load = self._ledger.load(worker)
        return load.waiting + load.running

    def _is_unbalanced(self, queues: Sequence[int | None]) -> bool:
        lengths = [length or 0 for length in queues]
        longest, shortest = max(lengths), min(lengths)
        policy = self._policy
        return longest - shortest > policy.balance_abs and longest > policy.balance_rel * shortest

    def _by_tree(
        self, keys: Sequence[BlockKey], workers: Sequence[CpGroup], queues: Sequence[int | None]
    ) -> list[int | None]:
        matched = [self._matched(worker, keys) for worker in workers]
        most = max(matched)
        if keys and most > self._policy.cache_threshold * len(keys):
            return [queue if blocks == most else None for queue, blocks in zip(queues, matched, strict=True)]
        return [len(self._trees.get(worker, ())) for worker in workers]

    def _matched(self, worker: CpGroup, keys: Sequence[BlockKey]) -> Blocks:
        tree = self._trees.get(worker, ())
        return next((number for number, key in enumerate(keys) if key not in tree), len(keys))

    def _feed(self, worker: CpGroup, keys: Sequence[BlockKey]) -> None:
        tree = self._trees.setdefault(worker, OrderedDict())
        for key in reversed(keys):  # the root last, so that leaves leave first
            tree[key] = None
            tree.move_to_end(key)
        while len(tree) > self._policy.tree_blocks:
            tree.popitem(last=False)
