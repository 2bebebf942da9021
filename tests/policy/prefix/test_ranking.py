"""What a scan carries out: the published ranking, ours, destinations, operations and budget."""

import pytest

from tests.support.builders import BLOCK_TOKENS, a_prefill_time
from tests.support.tries import BRANCH, LEFT, OTHER, PAIR, RIGHT, WIDE, Trie
from vertumnus.policy.prefix.destinations import Destination, Destinations
from vertumnus.policy.prefix.ranking import BlockSaving, Ranking, Replication
from vertumnus.policy.prefix.scan import Candidate, inter_candidates, intra_candidates


def destinations(trie: Trie) -> Destinations:
    return Destinations(trie.index, list(trie.pool.workers.values()), trie.ledger.outstanding())


def chosen(
    trie: Trie, rank_by: str = "count", operations: int = 8, budget: int | None = None
) -> list[Replication]:
    """What a scan of *trie* would replicate."""
    inter = inter_candidates(trie.index, trie.demand.busy(), (1, 2))
    intra = intra_candidates(trie.index, trie.demand.busy(), (1, 2), trie.config.theta_intra)
    ranking = Ranking(trie.index, destinations(trie), operations, budget, trie.config.theta_intra)
    if rank_by == "count":
        return ranking.by_count(inter, intra)
    return ranking.by_seconds([*inter, *intra], a_prefill_time(), BLOCK_TOKENS)


# ---- destinations


def test_the_longer_ancestor_path_wins_then_the_shorter_queue() -> None:
    """LEFT lacks two blocks of four, RIGHT all; among equals the idle one takes it."""
    trie = Trie()
    trie.hold(WIDE)
    trie.load(LEFT, 50)
    assert destinations(trie).best(BRANCH, 1) == Destination(RIGHT, 4)
    trie.hold(LEFT, BRANCH[:2])
    assert destinations(trie).best(BRANCH, 1) == Destination(LEFT, 2)


def test_who_has_the_prefix_or_cannot_hold_it_is_no_destination() -> None:
    """Nor is one that was promised it in this scan."""
    trie = Trie(blocks_per_rank=3)
    trie.hold(WIDE)
    assert destinations(trie).best(BRANCH, 1) is None  # three blocks fit a degree-1 worker
    assert destinations(trie).best(BRANCH[:3], 1) == Destination(LEFT, 3)
    promised = destinations(trie)
    assert promised.best(BRANCH, 2) == Destination(PAIR, 4)
    promised.add(BRANCH, Destination(PAIR, 4))
    assert promised.best(BRANCH, 2) is None


# ---- the published ranking


def test_first_replicas_go_by_missed_time_per_copied_block() -> None:
    """300 ms on one missing block beat 800 ms on four."""
    trie = Trie()
    trie.hold(WIDE)
    trie.hold(PAIR, OTHER)
    trie.hold(LEFT, OTHER[:2])
    trie.hold(RIGHT, OTHER[:2])
    trie.miss((8,), 1, 300)
    trie.miss((4,), 1, 500)
    assert [(r.reason, r.path) for r in chosen(trie)] == [("inter", OTHER[:3]), ("inter", BRANCH)]
    assert [r.path for r in chosen(trie, operations=1)] == [OTHER[:3]]


def test_further_replicas_go_by_access_per_replica_then_by_the_smaller_copy() -> None:
    """Six reuses of one replica, the shorter path first; then five of block 4."""
    trie = Trie()
    trie.hold(WIDE)
    trie.access((1, 2, 3), 2, 6)
    trie.access((4,), 2, 5)
    assert [r.path for r in chosen(trie)] == [(1,), (1, 2), (1, 2, 3), BRANCH]
    assert {r.destination for r in chosen(trie)} == {PAIR}


def test_each_list_has_its_own_bound() -> None:
    """One operation a list: one first replica and one further one."""
    trie = Trie()
    trie.hold(WIDE)
    trie.miss(BRANCH, 1, 300)
    trie.access(BRANCH, 2, 6)
    assert [(r.reason, len(r.path)) for r in chosen(trie, operations=1)] == [("inter", 1), ("intra", 1)]


# ---- ours


def test_seconds_saved_by_hand() -> None:
    """16 tokens at degree 2: 144 us of a less b, 800 us of c, and 2 us of alpha's strip at depth 1."""
    further = Candidate(1, 2, 1, 2, 6.0)
    strip = 5 * (32 * 33 - 16 * 17) / 2 - 5 * 16 * 16
    assert BlockSaving(a_prefill_time(), BLOCK_TOKENS).of(further) == pytest.approx(
        3 * (144e3 + 800e3 + strip), abs=6
    )
    assert BlockSaving(a_prefill_time(), BLOCK_TOKENS).of(Candidate(1, 1, 1, 0, 7e6)) == 7e6


def test_seconds_saved_rank_both_lists_together() -> None:
    """6 reuses of a block of 0.95 ms are worth less than 300 ms missed, more than 3 of them.

    Block 2 saves a little more than block 1 and brings it along.
    """
    trie = Trie()
    trie.hold(WIDE)
    trie.miss((1,), 1, 300)
    trie.access((1, 2), 2, 6)
    trie.access((3,), 2, 3)
    paths = [(r.reason, len(r.path)) for r in chosen(trie, "seconds")]
    assert paths == [("inter", 1), ("intra", 2), ("intra", 3)]


@pytest.mark.parametrize(("rank_by", "paths"), [("count", [(1,), (1, 2)]), ("seconds", [(1, 2)])])
def test_the_budget_bounds_the_copied_blocks(rank_by: str, paths: list) -> None:
    """Two blocks: the third of the path is not copied; nothing is with a budget of 0."""
    trie = Trie()
    trie.hold(WIDE)
    trie.access(BRANCH, 2, 6)
    assert [r.path for r in chosen(trie, rank_by, budget=2)] == paths
    assert chosen(trie, rank_by, budget=0) == []
