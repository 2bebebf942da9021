"""Replicas in the making: only on idle links, piece by piece, from whoever has the blocks."""

from tests.support.tries import BRANCH, LEFT, MS, PAIR, RIGHT, WIDE, Trie
from vertumnus.domain.orders import Transfer
from vertumnus.policy.prefix.ranking import Replication
from vertumnus.policy.prefix.replication import Replicator


def a_replicator(trie: Trie, at_once: int = 4, blocks_per_copy: int = 16) -> Replicator:
    return Replicator(
        trie.pool,
        trie.index,
        trie.ledger,
        trie.book,
        at_once=at_once,
        blocks_per_copy=blocks_per_copy,
    )


def confirm(trie: Trie, replicator: Replicator, order: Transfer, now: int) -> list[Transfer]:
    """Let the copy of *order* arrive."""
    owners = [order.destination.first_rank] * (len(order.path) - order.first_block)
    trie.index.install(order.path, order.first_block, owners)
    return replicator.ended(trie.book.end(order.transfer_id, now), now, len(order.path))


def test_only_missing_blocks_are_copied() -> None:
    """RIGHT has the first block: the other three come from WIDE's two ranks."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(RIGHT, BRANCH[:1])
    (order,) = a_replicator(trie).replace([Replication("inter", BRANCH, RIGHT)], 0)
    assert (order.path, order.first_block, order.sources) == (BRANCH, 1, (1, 0, 1))
    assert (order.destination, order.reason, order.for_request) == (RIGHT, "inter", None)


def test_a_long_path_goes_piece_by_piece() -> None:
    """Three blocks, then the fourth when they are there; then the replication is complete."""
    trie = Trie()
    trie.hold(WIDE)
    replicator = a_replicator(trie, blocks_per_copy=3)
    (first,) = replicator.replace([Replication("intra", BRANCH, PAIR)], 0)
    assert first.path == BRANCH[:3]
    (second,) = confirm(trie, replicator, first, 6 * MS)
    assert (second.path, second.first_block) == (BRANCH, 3)
    assert confirm(trie, replicator, second, 10 * MS) == [] and len(replicator) == 0


def test_a_copy_that_brought_less_is_gone_on_with_where_it_ended() -> None:
    """Of three blocks one came, and no report of it yet: the other three follow, not the fourth alone."""
    trie = Trie()
    trie.hold(WIDE)
    replicator = a_replicator(trie, blocks_per_copy=3)
    (first,) = replicator.replace([Replication("intra", BRANCH, PAIR)], 0)
    assert (first.path, first.first_block) == (BRANCH[:3], 0)
    (second,) = replicator.ended(trie.book.end(first.transfer_id, 3 * MS), 3 * MS, 1)
    assert (second.path, second.first_block) == (BRANCH, 1)


def test_a_busy_link_is_left_to_who_uses_it() -> None:
    """A pull into the destination, or out of the only source: the replica waits for its end."""
    for source, destination in ((PAIR, LEFT), (WIDE, RIGHT)):
        trie = Trie()
        trie.hold(WIDE)
        trie.hold(PAIR, (70,))
        pull = trie.book.begin((70,), 0, (source.first_rank,), destination, "pull", "pull", 5, 0)
        replicator = a_replicator(trie)
        assert replicator.replace([Replication("inter", BRANCH, LEFT)], 0) == []
        trie.book.end(pull.transfer_id, 4 * MS)
        (order,) = replicator.ended(pull, 4 * MS, len(pull.path))
        assert order.destination == LEFT


def test_an_idle_holder_is_preferred_to_a_busy_one() -> None:
    """WIDE sends; PAIR holds the same and sends nothing."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(PAIR)
    trie.book.begin((70,), 0, (0,), RIGHT, "pull", "pull", 5, 0)
    (order,) = a_replicator(trie).replace([Replication("inter", BRANCH, LEFT)], 0)
    assert set(order.sources) == {2, 3}


def test_equal_ranks_send_to_equal_ranks() -> None:
    """A degree-2 destination takes from a degree-2 holder, though an idler one of degree 1 has it, too."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(LEFT)
    trie.load(WIDE, 5)
    (order,) = a_replicator(trie).replace([Replication("intra", BRANCH, PAIR)], 0)
    assert set(order.sources) == {0, 1}


def test_of_equal_holders_the_least_loaded_sends() -> None:
    """LEFT has a queue, RIGHT has none."""
    trie = Trie()
    trie.hold(LEFT)
    trie.hold(RIGHT)
    trie.load(LEFT, 5)
    (order,) = a_replicator(trie).replace([Replication("inter", BRANCH, PAIR)], 0)
    assert set(order.sources) == {5}


def test_a_block_that_is_coming_anyway_is_waited_for() -> None:
    """A pull brings the path: no second copy starts, and then nothing is left to do."""
    trie = Trie()
    trie.hold(WIDE)
    pull = trie.book.begin(BRANCH, 0, (0, 1, 0, 1), LEFT, "pull", "pull", 5, 0)
    replicator = a_replicator(trie)
    assert replicator.replace([Replication("inter", BRANCH, LEFT)], 0) == [] and len(replicator) == 1
    assert confirm(trie, replicator, pull, 7 * MS) == [] and len(replicator) == 0


def test_at_most_so_many_copies_at_once() -> None:
    """One: the second starts when the first is over."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(PAIR, (70,))
    replicator = a_replicator(trie, at_once=1)
    wishes = [Replication("inter", BRANCH, LEFT), Replication("inter", (70,), RIGHT)]
    (first,) = replicator.replace(wishes, 0)
    (second,) = confirm(trie, replicator, first, 7 * MS)
    assert (first.destination, second.destination) == (LEFT, RIGHT)


def test_a_copy_that_failed_is_not_tried_again() -> None:
    """What is wanted still, the next scan finds."""
    trie = Trie()
    trie.hold(WIDE)
    replicator = a_replicator(trie)
    (order,) = replicator.replace([Replication("inter", BRANCH, LEFT)], 0)
    trie.book.end(order.transfer_id, MS)
    assert replicator.ended(order, MS, None) == [] and len(replicator) == 0


def test_without_source_or_destination_a_replication_is_dropped() -> None:
    """The blocks were evicted, or the destination drains."""
    trie = Trie()
    replicator = a_replicator(trie)
    assert replicator.replace([Replication("inter", BRANCH, LEFT)], 0) == [] and len(replicator) == 0
    trie.hold(WIDE)
    trie.pool.workers[LEFT].draining = "for a merge"
    assert replicator.replace([Replication("inter", BRANCH, LEFT)], 0) == [] and len(replicator) == 0


def test_a_new_scan_replaces_what_waits() -> None:
    """What was not begun is forgotten; what is under way goes on."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(PAIR, (70,))
    replicator = a_replicator(trie, at_once=1)
    replicator.replace([Replication("inter", BRANCH, LEFT), Replication("inter", (70,), LEFT)], 0)
    assert replicator.replace([Replication("inter", (70,), RIGHT)], MS) == [] and len(replicator) == 2
