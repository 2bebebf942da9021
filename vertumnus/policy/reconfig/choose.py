"""Which of the eligible moves is made (sec. 6.2)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.move import Direction, Move
from vertumnus.domain.units import Nanoseconds


def choose(
    moves: Iterable[Move],
    direction: Direction,
    drain_ns: Callable[[CpGroup], Nanoseconds],
    reconcile_blocks: Callable[[Sequence[Move]], Sequence[float]],
    admissible: Callable[[Move], bool],
) -> Move | None:
    """Return the best move in *direction*, None when none is admissible; see `ranked`."""
    eligible = [move for move in moves if move.kind == direction and admissible(move)]
    return next(ranked(eligible, drain_ns, reconcile_blocks), None)


def ranked(
    moves: Iterable[Move],
    drain_ns: Callable[[CpGroup], Nanoseconds],
    reconcile_blocks: Callable[[Sequence[Move]], Sequence[float]],
) -> Iterator[Move]:
    """Yield *moves*, the best first.

    Least predicted drain interval first: a merge waits for the slower of its siblings, *drain_ns* is
    one worker's [ns]. Then least expected KV reconciliation: *reconcile_blocks* is the missing blocks of
    retained prefixes of each of some moves, weighted by recent access; it is asked where drains are equal
    only, since it looks at every block. The paper leaves ties open; the lowest first rank wins.
    """

    def drain(move: Move) -> Nanoseconds:
        return max(drain_ns(source) for source in move.sources)

    for _, equal in groupby(sorted(moves, key=drain), key=drain):
        yield from _by_reconciliation(list(equal), reconcile_blocks)


def _by_reconciliation(
    moves: list[Move], reconcile_blocks: Callable[[Sequence[Move]], Sequence[float]]
) -> list[Move]:
    if len(moves) == 1:
        return moves
    blocks = dict(zip(moves, reconcile_blocks(moves), strict=True))
    return sorted(moves, key=lambda move: (blocks[move], move.sources[0].first_rank))
