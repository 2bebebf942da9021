"""Which replicas go: the least reused, at the fullest worker, leaves only, never the last copy."""

from tests.support.tries import BRANCH, LEFT, OTHER, PAIR, RIGHT, WIDE, Trie
from vertumnus.domain.orders import Reclaim
from vertumnus.policy.prefix.reclamation import Reclaimer
from vertumnus.policy.prefix.scan import reclaim_candidates


def reclaims(trie: Trie, operations: int = 8, pressure: dict | None = None) -> list[Reclaim]:
    """What is deleted once every block is old enough."""
    candidates = reclaim_candidates(
        trie.index, trie.demand, list(trie.index.replicated().items()), 0.5, 0, 99
    )
    workers = list(trie.pool.workers.values())
    return Reclaimer(trie.index, operations).orders(candidates, workers, pressure or {}, 77)


def test_leaves_go_where_memory_is_scarce() -> None:
    """Block 4 is on both degree-2 workers; PAIR evicted more."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(PAIR)
    assert reclaims(trie, 1, {WIDE: 1, PAIR: 5}) == [Reclaim(1, PAIR, (4,), 77, "manager")]
    assert reclaims(trie, 1, {WIDE: 5, PAIR: 1}) == [Reclaim(1, WIDE, (4,), 77, "manager")]


def test_a_block_with_a_child_at_its_worker_stays() -> None:
    """WIDE keeps blocks 3 and 4, so that only PAIR's and LEFT's ends of the path can go."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(PAIR, BRANCH[:2])
    trie.hold(LEFT, BRANCH[:1])
    found = {(order.worker, order.keys) for order in reclaims(trie)}
    assert found == {(PAIR, (2,)), (LEFT, (1,))}


def test_the_last_copy_stays() -> None:
    """Of two copies one goes, although both degrees have hardly any reuse of them."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(LEFT)
    orders = reclaims(trie)
    assert sum(len(order.keys) for order in orders) == 1 and orders[0].keys == (4,)


def test_the_least_reused_go_first() -> None:
    """Block 4 had some reuse, block 9 none; one operation."""
    trie = Trie()
    for worker in (WIDE, PAIR):
        trie.hold(worker)
        trie.hold(worker, OTHER)
    trie.access(BRANCH, 2, 1)
    trie.demand.decay()
    assert [order.keys for order in reclaims(trie, 1)] == [(9,)]


def test_a_draining_worker_is_left_alone() -> None:
    """RIGHT is no candidate, LEFT is."""
    trie = Trie()
    trie.hold(LEFT)
    trie.hold(RIGHT)
    trie.pool.workers[RIGHT].draining = "for a merge"
    candidates = reclaim_candidates(
        trie.index, trie.demand, list(trie.index.replicated().items()), 0.5, 0, 99
    )
    serving = [state for state in trie.pool.workers.values() if state.is_serving]
    (order,) = Reclaimer(trie.index, 8).orders(candidates, serving, {RIGHT: 9}, 0)
    assert order.worker == LEFT
