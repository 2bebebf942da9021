"""Pulls at routing time: when they pay, where they come from, when their blocks are there."""

import pytest

from tests.support.builders import BLOCK_TOKENS, a_cluster, a_prefill_time, a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.link import LinkConfig
from vertumnus.domain.orders import Transfer
from vertumnus.policy.links import Links
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.prefix.pull import Pull, Puller
from vertumnus.policy.prefix.transfers import Fetch, TransferBook

PAIR, LEFT, RIGHT = CpGroup(0, 2), CpGroup(2, 1), CpGroup(3, 1)
KEYS = tuple(range(1, 9))
REQUEST = a_request(9, input_tokens=136, block_keys=KEYS)
"""Eight blocks and eight tokens."""
PREDICT = a_prefill_time().predict
MS = 1_000_000


class Rig:
    """A pool whose PAIR holds the whole prefix; a block takes 1 ms, a copy 3 ms before its first byte."""

    def __init__(self, bytes_per_s: float = 1e6) -> None:
        self.pool = PoolState(a_cluster().initial_composition(), 64)
        self.index = PrefixIndex(self.pool.groups)
        self.links = Links(LinkConfig(bytes_per_s=bytes_per_s, latency_s=0.003), 1_000)
        self.book = TransferBook(self.pool, self.links)
        self.puller = Puller(self.pool, self.index, self.book, a_prefill_time(), BLOCK_TOKENS)
        self.hold(PAIR, 8)

    def hold(self, worker: CpGroup, blocks: int) -> None:
        self.index.install(KEYS[:blocks], 0, [worker.first_rank + i % worker.degree for i in range(blocks)])

    def price(self, worker: CpGroup, wait_ns: int = 0, now: int = 0, input_tokens: int = 136) -> Pull | None:
        """Price the pull of one candidate, its service time without it predicted here."""
        request = a_request(9, input_tokens=input_tokens, block_keys=KEYS[: input_tokens // BLOCK_TOKENS])
        held = self.index.match(request.block_keys or ()).held
        pulls = self.puller.look(request, held, now)
        if pulls is None:
            return None
        state = self.pool.workers[worker]
        cached = held[state.place] * BLOCK_TOKENS
        return pulls.price(
            state, held[state.place], wait_ns, PREDICT(worker.degree, input_tokens - cached, cached)
        )

    def prefetch(self, worker: CpGroup, wait_ns: int, now: int = 0) -> Transfer | None:
        """Place REQUEST at *worker* behind a queue of *wait_ns*."""
        held = self.index.match(KEYS).held
        cached = held[self.pool.workers[worker].place] * BLOCK_TOKENS
        service_ns = PREDICT(worker.degree, 136 - cached, cached)
        return self.puller.prefetch(REQUEST, worker, held, wait_ns, service_ns, now)


def test_a_pull_that_pays_says_when_its_blocks_are_there() -> None:
    """8 blocks in 11 ms, then E_1(8, 128): 22 ms together where computing takes 25 ms."""
    assert Rig().price(LEFT) == Pull(LEFT, 11 * MS, 0, 8, 128, PREDICT(1, 8, 128), PAIR)


def test_only_what_is_missing_travels() -> None:
    """With five blocks there, three come: 6 ms."""
    rig = Rig()
    rig.hold(LEFT, 5)
    pull = rig.price(LEFT, wait_ns=5 * MS)
    assert pull is not None
    assert (pull.first_block, pull.blocks, pull.ready_ns) == (5, 8, 6 * MS)


def test_a_slow_link_does_not_pay_unless_the_request_waits_anyway() -> None:
    """At 2 ms a block computing is faster; behind a queue of 20 ms the copy costs nothing."""
    assert Rig(bytes_per_s=0.5e6).price(LEFT) is None
    assert Rig(bytes_per_s=0.5e6).price(LEFT, wait_ns=20 * MS) is not None


def test_a_busy_link_counts() -> None:
    """Behind a copy of 50 ms out of the source, or into the destination, computing is faster."""
    for source, destination in ((PAIR, RIGHT), (RIGHT, LEFT)):
        rig = Rig()
        rig.links.reserve(77, (source,), destination, 47, 0)
        assert rig.price(LEFT) is None
        assert rig.price(LEFT, now=50 * MS) is not None


def test_the_best_holder_has_nothing_to_fetch() -> None:
    """Nor has anybody when all hold equally much, or nobody holds anything."""
    rig = Rig()
    assert rig.price(PAIR) is None
    rig.hold(LEFT, 8)
    rig.hold(RIGHT, 8)
    assert rig.price(LEFT) is None
    assert rig.puller.look(REQUEST, [0, 0, 0], 0) is None


def test_the_last_token_is_always_computed() -> None:
    """A prompt of exactly eight blocks fetches seven."""
    pull = Rig().price(LEFT, input_tokens=128)
    assert pull is not None and (pull.blocks, pull.cached_tokens) == (7, 112)


def test_a_draining_worker_is_no_source() -> None:
    """Its drain would wait for the copy."""
    rig = Rig()
    rig.pool.workers[PAIR].draining = "draining for a split"
    assert rig.price(LEFT) is None


def test_while_the_best_holder_drains_the_next_one_is_the_source() -> None:
    """RIGHT's five blocks in 8 ms, though PAIR, which an operator has drained, holds eight."""
    rig = Rig()
    rig.hold(RIGHT, 5)
    rig.pool.workers[PAIR].draining = rig.pool.workers[PAIR].held_by = "ann"
    pull = rig.price(LEFT)
    assert pull is not None
    assert (pull.source, pull.blocks, pull.ready_ns) == (RIGHT, 5, 8 * MS)
    rig.hold(LEFT, 5)
    assert rig.price(LEFT) is None


def test_of_two_holders_the_one_with_the_free_link_is_the_source() -> None:
    """PAIR sends for 50 ms; RIGHT holds the same."""
    rig = Rig()
    rig.hold(RIGHT, 8)
    rig.links.reserve(77, (PAIR,), CpGroup(9, 1), 47, 0)
    pull = rig.price(LEFT)
    assert pull is not None and (pull.source, pull.ready_ns) == (RIGHT, 11 * MS)


def test_the_chosen_pull_becomes_a_transfer_with_its_links_reserved() -> None:
    """The missing blocks from the ranks that have them; the next pull there waits behind it."""
    rig = Rig()
    rig.hold(LEFT, 2)
    pull = rig.price(LEFT, wait_ns=5 * MS)
    assert pull is not None
    transfer_id, order = rig.puller.begin(REQUEST, pull, 0)
    assert order is not None and order.transfer_id == transfer_id
    assert (order.path, order.first_block, order.sources) == (KEYS, 2, (0, 1, 0, 1, 0, 1))
    assert (order.destination, order.reason, order.for_request, order.origin) == (LEFT, "pull", 9, "pull")
    assert rig.links.in_free(LEFT) == rig.links.out_free(PAIR) == pull.ready_ns == 9 * MS


def test_a_second_wish_joins_the_transfer_under_way() -> None:
    """Same blocks, same destination: it is ready when the first is, and nothing more is copied."""
    rig = Rig()
    first = rig.price(LEFT)
    assert first is not None
    begun = rig.puller.begin(REQUEST, first, 0)
    second = rig.price(LEFT, now=5 * MS, wait_ns=5 * MS)
    assert second is not None
    assert (second.ready_ns, second.blocks, second.source) == (11 * MS, 8, None)
    assert rig.puller.begin(REQUEST, second, 5 * MS) == Fetch(begun.transfer_id, None)
    assert len(rig.book) == 1


def test_a_joined_transfer_brings_no_more_than_it_carries() -> None:
    """Four blocks are on their way: P counts four."""
    rig = Rig()
    rig.book.begin(KEYS[:4], 0, (0, 1, 0, 1), LEFT, "inter", "manager", None, 0)
    pull = rig.price(LEFT, wait_ns=2 * MS)
    assert pull is not None and (pull.blocks, pull.cached_tokens, pull.ready_ns) == (4, 64, 7 * MS)


def test_a_queue_that_is_long_enough_has_the_missing_blocks_copied_meanwhile() -> None:
    """Three of eight blocks are missing: 6 ms fit into a wait of 6 ms; nobody waits for the copy."""
    rig = Rig()
    rig.hold(LEFT, 5)
    copy = rig.prefetch(LEFT, wait_ns=6 * MS)
    assert copy is not None
    assert (copy.first_block, len(copy.path), copy.reason, copy.for_request) == (5, 8, "pull", None)
    assert copy.origin == "prefetch"
    assert rig.links.in_free(LEFT) == 6 * MS


@pytest.mark.parametrize(("worker", "wait_ns"), [(LEFT, 0), (LEFT, 11 * MS - 1), (PAIR, 50 * MS)])
def test_what_would_be_late_or_is_there_is_not_copied(worker: CpGroup, wait_ns: int) -> None:
    """An idle worker starts at once, 8 blocks take 11 ms, and PAIR lacks nothing."""
    rig = Rig()
    assert rig.prefetch(worker, wait_ns) is None
    assert len(rig.book) == 0


def test_what_is_on_its_way_is_not_copied_again() -> None:
    """A second request behind the first finds the same copy done."""
    rig = Rig()
    assert rig.prefetch(LEFT, 20 * MS) is not None
    assert rig.prefetch(LEFT, 40 * MS, now=MS) is None
    assert len(rig.book) == 1


@pytest.mark.parametrize("wait_ms", [0, 5, 11, 30])
def test_a_pull_never_ends_later_than_computing(wait_ms: int) -> None:
    """max(wait, ready) + s with the blocks is below wait + s without them, or there is no pull."""
    pull = Rig().price(LEFT, wait_ns=wait_ms * MS)
    alone = wait_ms * MS + PREDICT(1, 136, 0)
    assert pull is not None
    assert max(wait_ms * MS, pull.ready_ns) + pull.service_ns < alone
