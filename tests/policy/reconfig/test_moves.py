"""Splits and merges: which are legal, what they do, and why an operator's wish is not."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.reconfig import LATTICE, a_composition, inverse, tilings
from vertumnus.domain.cluster import Composition, CpGroup, Lattice, covers
from vertumnus.domain.errors import ConfigError, InvariantError
from vertumnus.domain.move import Move
from vertumnus.policy.reconfig.moves import apply, check_move, impossible, moves
from vertumnus.policy.reconfig.verdict import PoolView

LATTICES = [
    LATTICE,
    Lattice(8, (1, 2, 4, 8), 8),
    Lattice(8, (2, 4), 4),
    Lattice(12, (4, 8), 8),
    Lattice(6, (1, 2), 2),
    Lattice(7, (1, 2, 4), 8),
    Lattice(8, (1, 4), 8),
]

lattices = st.sampled_from(LATTICES)
pools = lattices.flatmap(
    lambda lattice: st.tuples(st.just(lattice), st.sampled_from(list(tilings(lattice))).map(Composition))
)


def test_moves_by_hand() -> None:
    """On 0x2 + 2x1 + 3x1 with degrees 1, 2, 4: split the CP2, merge the CP1s, nothing else."""
    legal = moves(a_composition("0x2", "2x1", "3x1"), LATTICE)
    assert [str(move) for move in legal] == ["split 0x2 -> 0x1 + 1x1", "merge 2x1 + 3x1 -> 2x2"]


def test_neighbours_that_are_not_siblings_stay() -> None:
    """1x1 and 2x1 lie side by side and belong to different parents."""
    legal = moves(a_composition("0x1", "1x1", "2x1", "3x1"), LATTICE)
    assert [move.sources for move in legal] == [
        (CpGroup(0, 1), CpGroup(1, 1)),
        (CpGroup(2, 1), CpGroup(3, 1)),
    ]


def test_a_worker_in_transition_takes_no_part() -> None:
    """Neither a split of a busy worker nor a merge with a busy sibling is offered."""
    composition = a_composition("0x2", "2x1", "3x1")
    assert moves(composition, LATTICE, busy={CpGroup(0, 2), CpGroup(3, 1)}) == []


def test_a_lost_sibling_leaves_no_merge() -> None:
    """With rank 1 out of service, rank 0 has nobody to merge with."""
    assert moves(a_composition("0x1", "2x2"), LATTICE) == [
        Move("split", (CpGroup(2, 2),), (CpGroup(2, 1), CpGroup(3, 1)))
    ]


@given(pools)
def test_every_move_stays_on_the_lattice(pool: tuple[Lattice, Composition]) -> None:
    """After any move every rank is covered once and every worker is a group of the lattice."""
    lattice, composition = pool
    groups = set(lattice.groups())
    for move in moves(composition, lattice):
        after = apply(composition, move)
        assert covers(after.workers, (), lattice.gpus)
        assert set(after.workers) <= groups
        assert list(after.workers) == sorted(after.workers)


@given(pools)
def test_every_move_can_be_undone(pool: tuple[Lattice, Composition]) -> None:
    """The inverse of a move is legal afterwards and leads back; undoing twice is the move itself."""
    lattice, composition = pool
    for move in moves(composition, lattice):
        after = apply(composition, move)
        assert inverse(move) in moves(after, lattice)
        assert apply(after, inverse(move)) == composition
        assert inverse(inverse(move)) == move


@given(pools, st.sampled_from([1, 2, 3, 4, 8]), st.data())
def test_every_move_offered_leaves_room_for_the_longest_prompt(pool, least: int, data) -> None:
    """Who could hold it before can after, whatever becomes of transitions; nothing else is left out."""
    lattice, composition = pool
    busy = data.draw(st.sets(st.sampled_from(composition.workers)))
    view = PoolView(composition, busy, lambda _: 0, lambda moves: [0.0] * len(moves), least)
    offered = view.moves(lattice)
    for move in moves(composition, lattice, busy):
        free = [worker.degree for worker in composition.workers if worker not in busy]
        after = [each.degree for each in apply(composition, move).workers if each not in busy]
        assert (move in offered) == (max(after) >= least or max(free) < least)


@given(pools)
def test_moves_are_exactly_the_adjacent_compositions(pool: tuple[Lattice, Composition]) -> None:
    """Legal moves reach each tiling that differs by one 2C worker against its halves, and no other."""
    lattice, composition = pool
    reached = [apply(composition, move) for move in moves(composition, lattice)]
    adjacent = [Composition(t) for t in tilings(lattice) if _differ_by_one_move(set(t), composition)]
    assert sorted(reached) == sorted(adjacent)


def _differ_by_one_move(workers: set[CpGroup], composition: Composition) -> bool:
    came, went = workers - set(composition.workers), set(composition.workers) - workers
    few, many = sorted((came, went), key=len)
    return len(few) == 1 and many == set(next(iter(few)).halves)


@pytest.mark.parametrize("lattice", [lattice for lattice in LATTICES if lattice.degrees != (1, 4)])
def test_any_composition_is_reachable(lattice: Lattice) -> None:
    """From the first tiling, moves lead to all of them where each degree is twice the one before."""
    everything = {Composition(tiling) for tiling in tilings(lattice)}
    start = min(everything)
    reached, frontier = {start}, [start]
    while frontier:
        composition = frontier.pop()
        fresh = {apply(composition, move) for move in moves(composition, lattice)} - reached
        reached |= fresh
        frontier += fresh
    assert reached == everything


@given(lattices)
def test_what_is_impossible_is_legal_nowhere(lattice: Lattice) -> None:
    """A legal move of some composition has no problem whatever the composition; nothing else is without."""
    everywhere = {move for tiling in tilings(lattice) for move in moves(Composition(tiling), lattice)}
    for kind, count in (("split", 1), ("merge", 2)):
        for workers in combinations(sorted(lattice.groups()), count):
            possible = any(move.kind == kind and set(move.sources) == set(workers) for move in everywhere)
            assert (not list(impossible(lattice, kind, workers))) == possible


@given(pools)
def test_an_operator_may_wish_what_is_legal(pool: tuple[Lattice, Composition]) -> None:
    """check_move gives back each legal move, whatever the order of the workers named."""
    lattice, composition = pool
    for move in moves(composition, lattice):
        assert check_move(composition, lattice, move.kind, move.sources[::-1]) == move


@pytest.mark.parametrize(
    ("kind", "workers", "problem"),
    [
        ("split", [(2, 1)], "split 2x1: a worker of degree 1 cannot be split"),
        ("split", [(0, 4)], "split 0x4: there is no worker 0x4; in its place: 0x2, 2x1, 3x1"),
        ("split", [(40, 4)], "split 40x4: there is no worker 40x4; in service: 0x2, 2x1, 3x1, 4x2, 6x2"),
        ("split", [(0, 1)], "split 0x1: there is no worker 0x1; in its place: 0x2"),
        ("split", [(6, 2)], "split 6x2: worker 6x2 is already in transition"),
        ("split", [], "split nothing: found 0 workers, a split takes 1"),
        ("merge", [(2, 1)], "merge 2x1: found 1 worker, a merge takes 2"),
        ("merge", [(2, 1), (2, 1)], "merge 2x1 + 2x1: found 2x1 twice, a merge takes 2 workers"),
        (
            "merge",
            [(0, 2), (2, 1)],
            "merge 0x2 + 2x1: 0x2 and 2x1 are not siblings; 0x2 merges only with 2x2",
        ),
        (
            "merge",
            [(0, 2), (4, 2)],
            "merge 0x2 + 4x2: 0x2 and 4x2 are not siblings; 0x2 merges only with 2x2",
        ),
        ("merge", [(0, 1), (1, 1)], "merge 0x1 + 1x1: there is no worker 0x1; in its place: 0x2"),
    ],
)
def test_an_illegal_wish_says_why(kind, workers, problem) -> None:
    """One sentence with the wish, what is wrong and what would be right; nothing else happens."""
    composition = a_composition("0x2", "2x1", "3x1", "4x2", "6x2")
    wished = [CpGroup(*worker) for worker in workers]
    with pytest.raises(ConfigError) as caught:
        check_move(composition, Lattice(8, (1, 2), 8), kind, wished, busy=[CpGroup(6, 2)])
    assert caught.value.problems[0] == problem


def test_unsupported_degrees_are_named() -> None:
    """A split below, a merge above the supported degrees, and a parent across nodes are told apart."""
    composition = a_composition("0x2", "2x2")
    wishes = [
        (Lattice(4, (2,), 4), "split", (CpGroup(0, 2),), "degree 1 is not supported; allowed: [2]"),
        (Lattice(4, (2,), 4), "merge", composition.workers, "degree 4 is not supported; allowed: [2]"),
        (Lattice(4, (2,), 2), "merge", composition.workers, "0x4 would not fit a node of 2 ranks"),
    ]
    for lattice, kind, workers, problem in wishes:
        with pytest.raises(ConfigError) as caught:
            check_move(composition, lattice, kind, workers)
        assert problem in str(caught.value)


def test_all_reasons_at_once() -> None:
    """A wish for two workers, one absent and one busy, names both."""
    with pytest.raises(ConfigError) as caught:
        check_move(a_composition("0x2"), LATTICE, "merge", [CpGroup(0, 2), CpGroup(2, 2)], [CpGroup(0, 2)])
    assert len(caught.value.problems) == 2


def test_a_move_of_other_workers_is_our_bug() -> None:
    """Applying a move whose source is not there raises instead of losing ranks."""
    move = Move("split", (CpGroup(0, 2),), CpGroup(0, 2).halves)
    with pytest.raises(InvariantError, match="not among the workers: 0x2"):
        apply(a_composition("0x4"), move)
