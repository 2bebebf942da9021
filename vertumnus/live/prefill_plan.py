"""Who holds, computes and keeps what in a prefill step: a pure function of the step, equal on all ranks.

Nothing here touches a tensor. A rank checks a step against its own state before the first collective,
since ranks that disagree on a size do not get an error but an abort.
"""

from collections.abc import Iterator
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.jobs import StepWork
from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import Rank, Tokens
from vertumnus.domain.wording import counted
from vertumnus.domain.zigzag import Zigzag


class Placement(NamedTuple):
    """Where a rank stands and how block slots are numbered."""

    group: CpGroup
    rank: Rank
    block_tokens: Tokens
    blocks_per_rank: int

    def owner(self, slot: int) -> Rank:
        """Return the rank whose memory *slot* names."""
        return slot // self.blocks_per_rank

    def local(self, slot: int) -> int:
        """Return the number of *slot* at its owner."""
        return slot % self.blocks_per_rank


class CachedPiece(NamedTuple):
    """What one rank of the group keeps of a work's cached prefix."""

    slots: tuple[int, ...]
    """Local slots, by block."""
    tokens: Tokens
    """Cached tokens in them: full blocks, except for a partial last one."""


class BlockWrite(NamedTuple):
    """New rows of a block that this rank keeps."""

    slot: int
    """Local slot."""
    offset: Tokens
    """Where in the block the first of *tokens* goes."""
    tokens: range
    """Uncached tokens, counted from the first."""


class WorkPlan(NamedTuple):
    """One request of a step, as one rank sees it."""

    work: StepWork
    zigzag: Zigzag
    pieces: tuple[CachedPiece, ...]
    """The cached prefix, by rank in the group."""
    writes: tuple[BlockWrite, ...]
    sends_queries: bool
    """Whether queries go to the cached keys (pass-Q) instead of keys to the queries."""

    @property
    def gathered_blocks(self) -> int:
        """Cached blocks that every rank sends, padded to the most that one keeps; 0 with pass-Q."""
        return 0 if self.sends_queries else max(len(piece.slots) for piece in self.pieces)


def sends_queries(uncached: Tokens, cached: Tokens, degree: int) -> bool:
    """Return whether pass-Q beats gathering the prefix: R <= 0.06 (P + R).

    Measured: 16K cached and 64 new tokens, 19 ms against 46; about even up to 0.2, a loss above a third.
    """
    return degree > 1 and 100 * uncached <= 6 * (cached + uncached)


def plan_work(work: StepWork, at: Placement) -> WorkPlan:
    """Return the part of the rank at *at* in *work*, which must have no `problems`."""
    uncached = work.input_tokens - work.cached_tokens
    return WorkPlan(
        work,
        Zigzag(uncached, at.group.degree),
        tuple(_piece(work, rank, at) for rank in at.group.ranks),
        tuple(_writes(work, at)),
        sends_queries(uncached, work.cached_tokens, at.group.degree),
    )


def problems(work: StepWork, at: Placement, max_position: Tokens) -> Iterator[str]:
    """Yield what is wrong with *work* at this rank; nothing when it can be computed."""
    name, blocks = f"request {work.request_id}", blocks_for(work.input_tokens, at.block_tokens)
    if not 0 <= work.cached_tokens < work.input_tokens:
        yield (
            f"{name}: {counted(work.cached_tokens, 'cached token')} of {work.input_tokens}; one must "
            f"be uncached"
        )
    if work.input_tokens > max_position:
        yield f"{name}: {counted(work.input_tokens, 'token')}, the model takes at most {max_position}"
    if len(work.slots) != blocks:
        yield (
            f"{name}: {counted(len(work.slots), 'slot')} for {counted(blocks, 'block')} of "
            f"{counted(at.block_tokens, 'token')}"
        )
    strangers = [slot for slot in work.slots if at.owner(slot) not in at.group.ranks]
    if strangers:
        yield f"{name}: slots {strangers[:8]} lie outside the worker {at.group}"


def _piece(work: StepWork, rank: Rank, at: Placement) -> CachedPiece:
    cached_blocks = blocks_for(work.cached_tokens, at.block_tokens)
    held = [block for block in range(cached_blocks) if at.owner(work.slots[block]) == rank]
    tokens = sum(
        min((block + 1) * at.block_tokens, work.cached_tokens) - block * at.block_tokens for block in held
    )
    return CachedPiece(tuple(at.local(work.slots[block]) for block in held), tokens)


def _writes(work: StepWork, at: Placement) -> Iterator[BlockWrite]:
    first = work.cached_tokens
    for block in range(first // at.block_tokens, len(work.slots)):
        slot = work.slots[block]
        if at.owner(slot) != at.rank:
            continue
        start = max(block * at.block_tokens, first)
        stop = min((block + 1) * at.block_tokens, work.input_tokens)
        yield BlockWrite(at.local(slot), start % at.block_tokens, range(start - first, stop - first))
