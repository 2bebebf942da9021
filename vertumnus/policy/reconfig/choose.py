"""Which of the eligible moves is made (sec. 6.2)."""

from collections.abc import Callable, Iterable

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.move import Direction, Move
from vertumnus.domain.units import Nanoseconds


def choose(
    moves: Iterable[Move],
    direction: Direction,
    drain_ns: Callable[[CpGroup], Nanoseconds],
    reconcile_blocks: Callable[[Move], float],
    admissible: Callable[[Move], bool],
) -> Move | None:
    """Return the best move in *direction*, None when none is admissible; see `ranked`."""
    eligible = [move for move in moves if move.kind == direction and admissible(move)]
    return next(iter(ranked(eligible, drain_ns, reconcile_blocks)), None)


def ranked(
    moves: Iterable[Move],
    drain_ns: Callable[[CpGroup], Nanoseconds],
    reconcile_blocks: Callable[[Move], float],
) -> list[Move]:
    """Return *moves*, the best first.

    Least predicted drain interval first: a merge waits for the slower of its siblings, *drain_ns* is
    one worker's [ns]. Then least expected KV reconciliation: *reconcile_blocks* is the missing blocks of
    retained prefixes, weighted by recent access. The paper leaves ties open; the lowest first rank wins.
    """
    return sorted(moves, key=lambda move: _rank(move, drain_ns, reconcile_blocks))


def _rank(
    move: Move, drain_ns: Callable[[CpGroup], Nanoseconds], reconcile_blocks: Callable[[Move], float]
) -> tuple[Nanoseconds, float, int]:
    drain = max(drain_ns(source) for source in move.sources)
    return drain, reconcile_blocks(move), move.sources[0].first_rank
