"""Per-request cache statistics: Algorithm 1 over the prefix index (sec. 7.1)."""

from collections.abc import Sequence

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request, reusable_tokens
from vertumnus.domain.units import SECOND, BlockKey, Blocks, Tokens
from vertumnus.policy.config import CacheConfig
from vertumnus.policy.prefix.demand import Demand
from vertumnus.policy.prefix.index import PrefixIndex


class PrefixStatistics:
    """Keeps access and missed, and forgets blocks that nobody holds once their demand has faded."""

    def __init__(
        self, config: CacheConfig, index: PrefixIndex, prefill_time: PrefillTimeModel, block_tokens: Tokens
    ) -> None:
        bounds = config.manager
        self.demand = Demand(config.decay, bounds.theta_intra, bounds.theta_inter_s * SECOND)
        self._index = index
        self._prefill_time = prefill_time
        self._block_tokens = block_tokens
        self._floor = config.demand_floor
        self._fading: dict[int, dict[BlockKey, None]] = {}
        """Blocks that nobody holds, by the scan at which their demand is due to have faded."""

    def count_reuse(self, request: Request, degree: int, cached_tokens: Tokens) -> None:
        """Add 1 to access of every block of the reused path (lines 1-2)."""
        reused = (request.block_keys or ())[: cached_tokens // self._block_tokens]
        for key in reused:
            self.demand.add_access(key, degree)
        self.demand.add_totals(degree, len(reused), 0)

    def count_missed(self, request: Request, known: Blocks, held_at_degree: Blocks, degree: int) -> None:
        """Add to missed what each matched block without a copy at the preferred *degree* would have saved.

        *known* blocks match, the first *held_at_degree* of them have a copy at that degree; holders
        only shrink along a path, so the rest have none (lines 4-9).
        """
        length, block = request.input_tokens, self._block_tokens
        keys = request.block_keys or ()
        cached = reusable_tokens(length, block, held_at_degree)
        before = at_first = self._prefill_time.predict(degree, length - cached, cached)
        for depth in range(held_at_degree, known):
            cached = reusable_tokens(length, block, depth + 1)
            after = self._prefill_time.predict(degree, length - cached, cached)
            self.demand.add_missed(keys[depth], degree, before - after)
            before = after
        self.demand.add_totals(degree, 0, at_first - before)

    def note_unheld(self, keys: Sequence[BlockKey]) -> None:
        """Take blocks that lost their last holder: drop them, or wait until their demand has faded."""
        for key in keys:
            if key in self.demand or self._index.has_children(key):
                self._await_fading(key)
            else:
                self._index.drop(key)

    def scan(self) -> None:
        """Decay all demand, then drop the blocks that nobody holds and hardly anybody wants."""
        self.demand.decay()
        self._index.scan += 1
        due = self._fading.pop(self.demand.scan, ())
        for key in sorted(due, key=self._depth, reverse=True):  # leaves before their parents
            self._drop_or_keep(key)

    def _await_fading(self, key: BlockKey) -> None:
        scans = self.demand.scans_to_fade(key, self._floor, self._floor * SECOND)
        self._fading.setdefault(self.demand.scan + scans, {})[key] = None

    def _depth(self, key: BlockKey) -> Blocks:
        node = self._index.node(key)
        return 0 if node is None else node.depth

    def _drop_or_keep(self, key: BlockKey) -> None:
        node = self._index.node(key)
        if node is None or node.owners:
            return
        if node.children or not self.demand.is_below(key, self._floor, self._floor * SECOND):
            self._await_fading(key)  # wanted again meanwhile, or part of a longer prefix that is
        else:
            self.demand.forget(key)
            self._index.drop(key)
