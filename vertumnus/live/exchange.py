"""What ranks send in a prefill step: one payload a layer, and the parts that pass-Q returns.

Every rank's payload has the same sections of the same sizes, padded where a rank has less to say;
padding is never read. Payloads are flat, so that one collective a layer is enough.
"""

# C ranks · n elements of a payload · r rows that a rank sends · R uncached tokens · T tokens of this rank
# W elements of KV per token and layer · N query heads · D head size · E = D + 1

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vertumnus.domain.zigzag import Zigzag
from vertumnus.live.attention import Partial
from vertumnus.live.prefill_plan import WorkPlan


class Section(NamedTuple):
    """The part of the payloads that belongs to one work; a rank's own tokens come first in its rows."""

    new_CrW: Tensor
    """Keys and values of the uncached tokens."""
    cached_CrW: Tensor
    """Keys and values of the cached tokens; no rows with pass-Q."""
    queries_CrH: Tensor
    """Queries of the uncached tokens, heads side by side; no rows without pass-Q."""


class Payload:
    """One rank's payload, filled anew in each layer."""

    def __init__(
        self, plans: Sequence[WorkPlan], block_tokens: int, kv_width: int, query_width: int, like: Tensor
    ) -> None:
        """Lay out sections for *plans*, of the dtype and device of *like*."""
        self._shapes = [
            shape for plan in plans for shape in _section_shapes(plan, block_tokens, kv_width, query_width)
        ]
        elements = sum(rows * width for rows, width in self._shapes)
        self.mine_n = like.new_zeros(elements)
        self.mine = self.sections(self.mine_n.unsqueeze(0))

    def sections(self, all_Cn: Tensor) -> list[Section]:
        """Return views of the sections of gathered payloads, by work."""
        columns = torch.split(all_Cn, [rows * width for rows, width in self._shapes], dim=1)
        views = [
            column.view(len(all_Cn), rows, width)
            for column, (rows, width) in zip(columns, self._shapes, strict=True)
        ]
        return [Section(*views[first : first + 3]) for first in range(0, len(views), 3)]


def _section_shapes(
    plan: WorkPlan, block_tokens: int, kv_width: int, query_width: int
) -> Iterator[tuple[int, int]]:
    yield plan.zigzag.rows, kv_width
    yield plan.gathered_blocks * block_tokens, kv_width
    yield (plan.zigzag.rows if plan.sends_queries else 0), query_width


def in_token_order(zigzag: Zigzag, gathered_CrX: Tensor) -> Tensor:
    """Return gathered rows as [R, X] in the order of the tokens, without padding."""
    return torch.cat([gathered_CrX[rank, rows.start : rows.stop] for rank, rows in zigzag.gathered_chunks()])


def pack_parts(parts: Iterable[Partial]) -> Tensor:
    """Return the parts of several works, over all their R tokens, as one flat float32 payload."""
    rows_RNE = (torch.cat((part.out_TND.float(), part.lse_TN.unsqueeze(-1)), dim=-1) for part in parts)
    return torch.cat([rows.flatten() for rows in rows_RNE])


def unpack_parts(
    all_Cn: Tensor, plans: Sequence[WorkPlan], heads: int, rank_in_group: int
) -> list[list[Partial]]:
    """Return, for each work, what the ranks with cached keys found for this rank's tokens."""
    per_token = all_Cn.shape[1] // sum(plan.zigzag.tokens for plan in plans)
    works = torch.split(all_Cn, [plan.zigzag.tokens * per_token for plan in plans], dim=1)
    return [
        list(_own_parts(work_Cn.view(len(all_Cn), plan.zigzag.tokens, heads, -1), plan, rank_in_group))
        for work_Cn, plan in zip(works, plans, strict=True)
    ]


def _own_parts(parts_CRNE: Tensor, plan: WorkPlan, rank_in_group: int) -> Iterator[Partial]:
    chunks = plan.zigzag.chunks_of(rank_in_group)
    for parts_RNE, piece in zip(parts_CRNE, plan.pieces, strict=True):
        if piece.tokens:
            own_TNE = torch.cat([parts_RNE[chunk.start : chunk.stop] for chunk in chunks])
            yield Partial(own_TNE[..., :-1], own_TNE[..., -1])
