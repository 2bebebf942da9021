"""What splits would leave their halves to reconcile, in one walk over the known blocks (sec. 6.2)."""

from collections.abc import Mapping, Sequence

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.move import Move
from vertumnus.domain.units import Rank
from vertumnus.policy.prefix.demand import Demand
from vertumnus.policy.prefix.index import PrefixIndex


def lacking_after(moves: Sequence[Move], index: PrefixIndex, demand: Demand) -> list[float]:
    """Return the missing blocks of retained prefixes after each of *moves*, weighted by recent access.

    After a merge nothing is missing that must move: any ownership serves. After a split each half lacks what
    the other one holds. *moves* are of one composition: no rank is in two splits.
    """
    splits = [move for move in moves if move.kind == "split"]
    held = _accessed_on([half for split in splits for half in split.targets], index, demand) if splits else {}
    return [sum(held[half] for half in move.targets) if move.kind == "split" else 0.0 for move in moves]


def _accessed_on(halves: Sequence[CpGroup], index: PrefixIndex, demand: Demand) -> dict[CpGroup, float]:
    """Return what each of *halves* holds, weighted by access at the degree of the worker that it halves."""
    half_of_rank = {rank: half for half in halves for rank in half.ranks}
    held = dict.fromkeys(halves, 0.0)
    holding: dict[int, tuple[CpGroup, ...]] = {}
    for key, owners in index.owned():
        if key not in demand:
            continue
        holders = holding.get(owners)
        if holders is None:
            holders = holding[owners] = _halves(owners, half_of_rank)
        for half in holders:
            held[half] += demand.access(key, 2 * half.degree)
    return held


def _halves(owners: int, half_of_rank: Mapping[Rank, CpGroup]) -> tuple[CpGroup, ...]:
    """Return the halves with one of the ranks *owners* (a bitmask)."""
    ranks = (rank for rank in range(owners.bit_length()) if owners >> rank & 1)
    return tuple(dict.fromkeys(half_of_rank[rank] for rank in ranks if rank in half_of_rank))
