"""The book of transfers: links and pending blocks from the order to the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import a_cluster
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.link import LinkConfig
from vertumnus.policy.links import Links
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.transfers import TransferBook

PAIR, LEFT, RIGHT = CpGroup(0, 2), CpGroup(2, 1), CpGroup(3, 1)
MS = 1_000_000


def a_book() -> TransferBook:
    """One degree-2 and two degree-1 workers; a block takes 1 ms, a copy 3 ms before its first byte."""
    pool = PoolState(a_cluster().initial_composition(), 64)
    return TransferBook(pool, Links(LinkConfig(bytes_per_s=1e6, latency_s=0.003), 1_000))


def test_blocks_are_pending_until_the_end() -> None:
    """Only those from the first block on, at the destination, and whatever the end is."""
    book = a_book()
    order = book.begin((7, 8, 9), 1, (0, 1), LEFT, "pull", "pull", 5, 0)
    assert [book.bringing(LEFT, key) for key in (7, 8, 9)] == [None, order, order]
    assert book.bringing(RIGHT, 8) is None
    assert book.end(order.transfer_id, 4 * MS) == order
    assert book.bringing(LEFT, 8) is None and len(book) == 0


def test_a_transfer_reserves_the_links_of_whole_workers() -> None:
    """Two ranks of one source are one way out; a block that is at the destination does not travel."""
    book = a_book()
    book.begin((7, 8, 9), 0, (0, 1, 2), LEFT, "reconcile", "reconcile", 5, 0)
    assert book.links.out_free(PAIR) == book.links.in_free(LEFT) == 5 * MS  # 3 ms + 2 blocks
    assert book.links.out_free(LEFT) == 0


def test_a_replica_waits_for_nobody() -> None:
    """Its order names no request."""
    assert a_book().begin((7,), 0, (0,), RIGHT, "inter", "manager", None, 0).for_request is None


def test_a_block_that_two_transfers_bring_is_the_later_ones() -> None:
    """The end of the earlier one does not forget it."""
    book = a_book()
    first = book.begin((7, 8), 0, (0, 1), LEFT, "intra", "manager", None, 0)
    second = book.begin((7, 8, 9), 0, (0, 1, 0), LEFT, "pull", "pull", 1, 0)
    book.end(first.transfer_id, MS)
    assert book.bringing(LEFT, 7) == second
    book.check()


def test_the_audit_finds_a_link_that_nobody_holds() -> None:
    """A reservation without its transfer is an error of ours."""
    book = a_book()
    book.begin((7,), 0, (0,), RIGHT, "inter", "manager", None, 0)
    book.links.release(1, 0)
    with pytest.raises(InvariantError, match="0 links reserved for 1 transfer"):
        book.check()


@given(
    st.lists(
        st.tuples(st.sampled_from([PAIR, LEFT, RIGHT]), st.integers(0, 3), st.integers(1, 4), st.booleans()),
        max_size=20,
    )
)
def test_everything_ends_at_nothing(wishes) -> None:
    """Whatever begins and ends in which order, the audit holds and the last end leaves an empty book."""
    book, under_way = a_book(), []
    for now, (destination, first, blocks, ends) in enumerate(wishes):
        source = 0 if destination != PAIR else 2
        path = tuple(range(first + blocks))
        under_way.append(book.begin(path, first, (source,) * blocks, destination, "pull", "pull", now, now))
        book.check()
        if ends:
            book.end(under_way.pop(first % len(under_way)).transfer_id, now)
            book.check()
    for order in under_way:
        book.end(order.transfer_id, len(wishes))
    assert len(book) == 0 and not book.receiving()
    assert not [key for worker in (PAIR, LEFT, RIGHT) for key in range(7) if book.bringing(worker, key)]
