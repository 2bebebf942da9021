"""The books that every request passes through: ledger, prefix index, a worker's block cache."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.request import Request
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.run.simulated import rare_collections
from vertumnus.workers.block_cache import BlockCache
from vertumnus_profiling.bench.measure import Result, Settings, result, timed_ns
from vertumnus_profiling.bench.pools import (
    FIFTEEN_WORKERS,
    GAP_NS,
    PROMPT_BLOCKS,
    SHARED_BLOCKS,
    family_requests,
    groups_of,
    simulated_config,
)


def ledger(settings: Settings) -> Iterator[Result]:
    """One request's way through the ledger: reserved, begun, started, stopped, released."""
    workers, requests = groups_of(FIFTEEN_WORKERS), settings.size(50_000, 1_000)
    books = Ledger(workers)

    def settle() -> None:
        for number in range(requests):
            worker = workers[number % len(workers)]
            books.reserve(number, worker, GAP_NS)
            books.begin(number, GAP_NS + 1)
            books.start(worker, GAP_NS + 1, number)
            books.stop(worker)
            books.release(number)

    yield _each(settings, "ledger/request", [settle], requests)


def index(settings: Settings) -> Iterator[Result]:
    """Installing and evicting one block of 17-block prompts in the prefix index."""
    groups = groups_of(FIFTEEN_WORKERS)
    requests = list(family_requests(settings.size(4_000, 100)))
    paths = [request.block_keys or () for request in requests]
    blocks = len(paths) * PROMPT_BLOCKS
    tries = [PrefixIndex(groups) for _ in range(settings.repeats)]
    installs = [partial(_install_all, trie, groups, paths) for trie in tries]
    evictions = [partial(_evict_all, trie, groups, paths) for trie in tries]
    yield _each(settings, "index/install", installs, blocks)
    yield _each(settings, "index/evict", evictions, blocks)


def block_cache(settings: Settings) -> Iterator[Result]:
    """One block's share of a prompt's way through a full cache: pin, reserve, install, unpin."""
    cluster = simulated_config().cluster
    cache = BlockCache(CpGroup(0, 4), cluster.blocks_per_rank)
    count = settings.size(2_000, 50)
    filling = cache.capacity // (PROMPT_BLOCKS - SHARED_BLOCKS)  # prompts whose own blocks fill it
    requests = list(family_requests(filling + settings.repeats * count))
    _pass_through(cache, requests[:filling])
    starts = range(filling, len(requests), count)
    passes = [partial(_pass_through, cache, requests[start : start + count]) for start in starts]
    yield _each(settings, "block_cache/cycle", passes, count * PROMPT_BLOCKS)


def _each(settings: Settings, name: str, actions: Sequence[Callable[[], None]], operations: int) -> Result:
    """Time one of *actions* in each repeat, in turn, and return the nanoseconds of one operation."""
    with rare_collections():
        took = [timed_ns(actions[repeat % len(actions)]) / operations for repeat in range(settings.repeats)]
    return result(name, "ns", took, operations)


def _install_all(trie: PrefixIndex, groups: Sequence[CpGroup], paths: Sequence[tuple[int, ...]]) -> None:
    for number, path in enumerate(paths):
        group = groups[number % len(groups)]
        trie.install(path, 0, [group.first_rank + block % group.degree for block in range(len(path))])


def _evict_all(trie: PrefixIndex, groups: Sequence[CpGroup], paths: Sequence[tuple[int, ...]]) -> None:
    for number, path in enumerate(paths):
        group = groups[number % len(groups)]
        for rank in group.ranks:
            trie.evict(rank, path[rank - group.first_rank :: group.degree])


def _pass_through(cache: BlockCache, requests: Sequence[Request]) -> None:
    for request in requests:
        path = request.block_keys or ()
        held = cache.leading_blocks(path)
        cache.pin(path[:held])
        slots = cache.reserve(held, len(path) - held).slots
        cache.install(path, held, slots)
        cache.unpin(path)
