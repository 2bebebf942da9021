"""Which eligible move is made: drain, then reconciliation, then first rank."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.support.reconfig import LATTICE, a_composition, tilings
from vertumnus.domain.cluster import Composition, CpGroup
from vertumnus.domain.move import Move
from vertumnus.policy.reconfig.choose import choose, ranked
from vertumnus.policy.reconfig.moves import moves

SINGLES = a_composition("0x1", "1x1", "2x1", "3x1")
LOW, HIGH = moves(SINGLES, LATTICE)
"""Merges of ranks 0 and 1, and of ranks 2 and 3."""


def unweighed(moves: Sequence[Move]) -> list[float]:
    """Nothing to reconcile after any move."""
    return [0.0] * len(moves)


def chosen(drains: tuple[int, ...] = (0, 0, 0, 0), blocks: tuple[float, float] = (0.0, 0.0), admissible=None):
    """The merge chosen with a drain for each rank and blocks for each of the two merges."""
    return choose(
        moves(SINGLES, LATTICE),
        "merge",
        lambda worker: drains[worker.first_rank],
        lambda moves: [blocks[move == HIGH] for move in moves],
        admissible or (lambda move: True),
    )


def test_the_shorter_drain_wins() -> None:
    """A merge waits for its slower sibling: max(1, 9) loses against max(5, 6), whatever is to be copied."""
    assert chosen(drains=(1, 9, 5, 6), blocks=(0.0, 100.0)) == HIGH


def test_then_the_lesser_traffic() -> None:
    """Equal drains: 3 blocks lose against 2.5."""
    assert chosen(drains=(4, 7, 7, 0), blocks=(3.0, 2.5)) == HIGH


def test_then_the_lower_rank() -> None:
    """All equal: the lower first rank."""
    assert chosen() == LOW


def test_only_what_is_admissible() -> None:
    """The better move is refused: the other one; both are: none."""
    assert chosen(drains=(1, 1, 5, 5), admissible=lambda move: move == HIGH) == HIGH
    assert chosen(admissible=lambda move: False) is None


def test_only_the_direction_asked_for() -> None:
    """Four CP1 cannot be split, so a split finds nothing."""
    assert choose(moves(SINGLES, LATTICE), "split", lambda w: 0, unweighed, lambda m: True) is None


@given(
    st.sampled_from([Composition(tiling) for tiling in tilings(LATTICE)]),
    st.sampled_from(["split", "merge"]),
    st.dictionaries(st.integers(0, 3), st.integers(0, 2)),
    st.randoms(use_true_random=False),
)
def test_the_choice_does_not_hang_on_the_order(composition, direction, drains, random) -> None:
    """Shuffled moves give the same choice, and no eligible move drains faster."""

    def drain_ns(worker: CpGroup) -> int:
        return drains.get(worker.first_rank, 0)

    def longest(move: Move) -> int:
        return max(map(drain_ns, move.sources))

    legal = moves(composition, LATTICE)
    best = choose(legal, direction, drain_ns, unweighed, lambda move: True)
    random.shuffle(legal)
    assert choose(legal, direction, drain_ns, unweighed, lambda move: True) == best
    eligible = [move for move in legal if move.kind == direction]
    assert (best is None) == (not eligible)
    if best is not None:
        assert longest(best) == min(map(longest, eligible))


@given(
    st.sampled_from([Composition(tiling) for tiling in tilings(LATTICE)]),
    st.dictionaries(st.integers(0, 3), st.integers(0, 2)),
    st.dictionaries(st.integers(0, 3), st.floats(0, 2)),
)
def test_only_equal_drains_are_weighed(composition, drains, blocks) -> None:
    """The order is that of a plain sort by drain, blocks and rank; no move is weighed that drains alone."""
    weighed: list[Move] = []

    def weigh(moves: Sequence[Move]) -> list[float]:
        weighed.extend(moves)
        return [blocks.get(move.sources[0].first_rank, 0.0) for move in moves]

    def longest(move: Move) -> int:
        return max(drains.get(source.first_rank, 0) for source in move.sources)

    for kind in ("split", "merge"):
        alike = [move for move in moves(composition, LATTICE) if move.kind == kind]
        plain = sorted(alike, key=lambda move: (longest(move), weigh([move])[0], move.sources[0].first_rank))
        weighed.clear()
        assert list(ranked(alike, lambda worker: drains.get(worker.first_rank, 0), weigh)) == plain
        drained = [longest(move) for move in alike]
        assert set(weighed) == {move for move in alike if drained.count(longest(move)) > 1}
