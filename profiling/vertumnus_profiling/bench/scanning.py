"""What a scan of the prefix trie costs the control plane (sec. 7.2, Algorithm 2)."""

import random
from collections.abc import Iterator
from functools import partial

from msgspec import structs

from vertumnus.config import RunConfig
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.request import Request
from vertumnus.domain.units import BlockKey
from vertumnus.policy.config import CacheConfig
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.config import ManagerConfig
from vertumnus.policy.prefixes import Prefixes
from vertumnus.run.simulated import rare_collections
from vertumnus_profiling.bench.measure import Result, Settings, result, timed_ns
from vertumnus_profiling.bench.pools import BLOCK_TOKENS, of_composition, profile_of, simulated_config

WORKERS = {4: 5, 2: 10}
NODES, PATH_BLOCKS = 100_000, 20
"""Blocks of the trie, in prefixes of this many."""
REPLICATED_SHARE = 0.3
"""Of the prefixes, those that a second worker holds."""
REUSES = 10_000
"""Requests that reused a prefix since the last scan, the first prefixes most often."""
MANAGER = ManagerConfig(rank_by="seconds_per_byte", operations_per_scan=256, theta_intra=2.0)


def scan(settings: Settings) -> Iterator[Result]:
    """A scan of 100,000 blocks at two degrees: 30 % of them replicated, 10,000 prompts since the last one."""
    nodes = settings.size(NODES, 2_000)
    took = []
    for seed in range(settings.repeats):
        prefixes = trie(nodes, settings.size(REUSES, 200), random.Random(seed))
        with rare_collections():
            took.append(timed_ns(partial(prefixes.scan, 0)) / 1_000)
    yield result(f"scan/{nodes}_blocks", "us", took, 1)


def trie(nodes: int, reuses: int, draw: random.Random) -> Prefixes:
    """Return the prefix books of a pool that has served, with every third prefix replicated and old."""
    config = of_composition(simulated_config(), WORKERS)
    pool = PoolState(config.cluster.initial_composition(), config.cluster.blocks_per_rank)
    prefixes = _books(config, pool)
    paths = [tuple(range(first, min(first + PATH_BLOCKS, nodes))) for first in range(0, nodes, PATH_BLOCKS)]
    for path in paths:
        copies = 2 if draw.random() < REPLICATED_SHARE else 1
        for group in draw.sample(pool.groups, copies):
            prefixes.index.install(path, 0, _owners(group, path))
    for _ in range(MANAGER.grace_scans):
        prefixes.statistics.scan()
    for number in range(reuses):
        path = paths[int(draw.paretovariate(0.3)) % len(paths)]
        request = Request(number, 0, len(path) * BLOCK_TOKENS + 1, 1, path)
        degree = draw.choice((2, 4))
        prefixes.statistics.count_reuse(request, degree, len(path) * BLOCK_TOKENS)
        prefixes.statistics.count_missed(request, len(path), len(path) // 2, 6 - degree)
    return prefixes


def _books(config: RunConfig, pool: PoolState) -> Prefixes:
    profile = profile_of(config)
    return Prefixes(
        structs.replace(CacheConfig(), manager=MANAGER),
        pool,
        Ledger(pool.groups),
        profile.prefill_time(),
        config.cluster.link,
        block_tokens=BLOCK_TOKENS,
        block_bytes=profile.kv_bytes_per_token * BLOCK_TOKENS,
    )


def _owners(group: CpGroup, path: tuple[BlockKey, ...]) -> list[int]:
    return [group.first_rank + block % group.degree for block in range(len(path))]
