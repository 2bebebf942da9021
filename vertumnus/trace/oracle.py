"""What an unlimited cache of the whole pool would reuse, in order of arrival: the upper bound.

Whole blocks count, as in every real cache here; the partial last block and the count by blocks
are told beside it, because publications count in all three ways.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from vertumnus.domain.request import Request, reusable_tokens
from vertumnus.domain.units import BlockKey, Tokens, to_seconds
from vertumnus.trace.blocks import ChainedKeys
from vertumnus.trace.rows import TraceRow


class OracleCache:
    """A cache that never evicts and that every request can reach at once."""

    def __init__(self, block_tokens: Tokens) -> None:
        self._block_tokens = block_tokens
        self._held: set[BlockKey] = set()

    def reusable_tokens(self, request: Request) -> Tokens | None:
        """Return P of *request* after all earlier ones, and hold its blocks from now on.

        None where the request's content is unknown.
        """
        if request.block_keys is None:
            return None
        held_blocks = _leading(request.block_keys, self._held)
        self._held.update(request.block_keys[held_blocks:])
        return reusable_tokens(request.input_tokens, self._block_tokens, held_blocks)


class TraceStats(Struct, frozen=True, kw_only=True):
    """A trace in numbers; shares of reuse are None where no row tells its block ids."""

    requests: int
    sum_input_tokens: Tokens
    span_s: float
    """From the first arrival to the last [s]."""
    distinct_timestamps: int
    max_same_timestamp: int
    """Most requests that share one stamp."""
    distinct_blocks: int
    """Different prefixes that end with a block, partial last blocks included."""
    oracle_reuse: float | None
    """Share of input tokens in whole blocks that an unlimited cache holds."""
    oracle_reuse_partial: float | None
    """The same when a partial last block counts too."""
    oracle_reuse_blocks: float | None
    """The same as a share of blocks."""
    mean_input_tokens: float
    p99_input_tokens: float
    """By linear interpolation, as is the output's."""
    mean_output_tokens: float
    p99_output_tokens: float
    one_token_outputs: int
    full_hits: int
    """Prompts of which an unlimited cache holds every block, the partial last one included."""


def trace_stats(rows: Sequence[TraceRow], block_tokens: Tokens) -> TraceStats:
    """Return the numbers of *rows*, of which there is at least one, in order of arrival."""
    arrivals = np.array([row.arrival_ns for row in rows], dtype=np.int64)
    input_tokens = np.array([row.input_tokens for row in rows], dtype=np.int64)
    output_tokens = np.array([row.output_tokens for row in rows], dtype=np.int64)
    stamps = np.unique(arrivals, return_counts=True)[1]
    reuse = _reuse(rows, block_tokens)
    return TraceStats(
        requests=len(rows),
        sum_input_tokens=int(input_tokens.sum()),
        span_s=to_seconds(int(arrivals[-1] - arrivals[0])),
        distinct_timestamps=len(stamps),
        max_same_timestamp=int(stamps.max()),
        distinct_blocks=reuse.distinct_blocks,
        oracle_reuse=_share(reuse.whole_tokens, reuse.known_tokens),
        oracle_reuse_partial=_share(reuse.partial_tokens, reuse.known_tokens),
        oracle_reuse_blocks=_share(reuse.held_blocks, reuse.known_blocks),
        mean_input_tokens=float(input_tokens.mean()),
        p99_input_tokens=float(np.percentile(input_tokens, 99)),
        mean_output_tokens=float(output_tokens.mean()),
        p99_output_tokens=float(np.percentile(output_tokens, 99)),
        one_token_outputs=int((output_tokens == 1).sum()),
        full_hits=reuse.full_hits,
    )


class _Reuse(NamedTuple):
    """Sums over the rows whose block ids are known."""

    known_tokens: Tokens
    known_blocks: int
    distinct_blocks: int
    held_blocks: int
    whole_tokens: Tokens
    partial_tokens: Tokens
    full_hits: int


def _reuse(rows: Sequence[TraceRow], block_tokens: Tokens) -> _Reuse:
    whole, partial = ChainedKeys(), ChainedKeys()
    known_tokens = known_blocks = held_blocks = whole_tokens = partial_tokens = full_hits = 0
    for row in rows:
        if row.block_ids is None:
            continue
        held = _held(partial, row.block_ids)
        held_whole = _held(whole, row.block_ids[: row.input_tokens // block_tokens])
        known_tokens += row.input_tokens
        known_blocks += len(row.block_ids)
        held_blocks += held
        whole_tokens += reusable_tokens(row.input_tokens, block_tokens, held_whole)
        partial_tokens += min(held * block_tokens, row.input_tokens)
        full_hits += held == len(row.block_ids)
    return _Reuse(
        known_tokens, known_blocks, len(partial), held_blocks, whole_tokens, partial_tokens, full_hits
    )


def _held(chained: ChainedKeys, block_ids: Sequence[int]) -> int:
    """Return how many leading blocks earlier calls have seen, and note the others."""
    seen = len(chained)  # keys are dense in order of appearance
    return sum(key < seen for key in chained.chain(block_ids))


def _leading(keys: tuple[BlockKey, ...], held: set[BlockKey]) -> int:
    for place, key in enumerate(keys):
        if key not in held:
            return place
    return len(keys)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
