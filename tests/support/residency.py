"""Blocks by rank, as the prefix index knows them and as the workers hold them: the two agree."""

from collections import Counter
from collections.abc import Iterable

from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.workers.block_cache import BlockCache
from vertumnus.workers.worker import Worker

RANKS = range(8)
"""As many as the pools of the tests have at most."""


def known_by_rank(index: PrefixIndex) -> dict[int, int]:
    """Return the number of blocks on each rank that is known to hold any."""
    known = {rank: sum(1 for _ in index.keys_on(1 << rank)) for rank in RANKS}
    return {rank: blocks for rank, blocks in known.items() if blocks}


def held_by_rank(workers: Iterable[Worker]) -> dict[int, int]:
    """Return the number of blocks on each rank of a worker in service that holds any."""
    return dict(Counter(rank for each in workers if each.in_service for rank in ranks_of(each.cache)))


def ranks_of(cache: BlockCache) -> list[int]:
    """Return the rank of every block in *cache*."""
    return [slot // cache.blocks_per_rank for _, slot in cache.resident_slots()]
