"""A trace in numbers: lengths, times, and what an unlimited cache of the whole pool would reuse.

Whole blocks count, as in every real cache here; the partial last block and the count by blocks
are told beside it, because publications count in all three ways.
"""

from array import array
from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from vertumnus.domain.request import reusable_tokens
from vertumnus.domain.units import Tokens, to_seconds
from vertumnus.trace.blocks import ChainedKeys
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.sampling import Integers


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


class Columns:
    """What a trace's statistics need of each row, 32 bytes a row; grows row by row, in order of arrival."""

    def __init__(self, block_tokens: Tokens) -> None:
        self.block_tokens = block_tokens
        self._arrivals, self._inputs, self._outputs, self._cached = (array("q") for _ in range(4))
        self._keys = ChainedKeys()
        self._is_whole = bytearray()
        """For each key whether some prompt had it as a whole block."""
        self.uses = array("I")
        """For each key how many prompts have it."""
        self.known_tokens: Tokens = 0
        """Input tokens of the rows whose block ids are known, as the next five."""
        self.known_blocks = self.held_blocks = self.whole_tokens = self.partial_tokens = self.full_hits = 0

    def add(self, row: TraceRow) -> None:
        """Count *row*."""
        self._arrivals.append(row.arrival_ns)
        self._inputs.append(row.input_tokens)
        self._outputs.append(row.output_tokens)
        self._cached.append(0 if row.block_ids is None else self._reuse(row.input_tokens, row.block_ids))

    @property
    def keys(self) -> ChainedKeys:
        """The blocks so far."""
        return self._keys

    @property
    def arrivals(self) -> Integers:
        """Arrival of each row [ns]."""
        return np.frombuffer(self._arrivals, dtype=np.int64)

    @property
    def input_tokens(self) -> Integers:
        """Prompt length of each row."""
        return np.frombuffer(self._inputs, dtype=np.int64)

    @property
    def output_tokens(self) -> Integers:
        """Output length of each row."""
        return np.frombuffer(self._outputs, dtype=np.int64)

    @property
    def cached_tokens(self) -> Integers:
        """What an unlimited cache holds of each prompt in whole blocks; 0 where ids are unknown."""
        return np.frombuffer(self._cached, dtype=np.int64)

    def _reuse(self, input_tokens: Tokens, block_ids: tuple[int, ...]) -> Tokens:
        """Count the blocks of one prompt and return what of it was there in whole blocks."""
        seen = len(self._keys)
        keys = self._keys.chain(block_ids)
        fresh = len(self._keys) - seen
        self._is_whole.extend(bytes(fresh))
        self.uses.extend([0] * fresh)
        held = len(keys) - fresh  # keys are dense in order of appearance
        whole = keys[: input_tokens // self.block_tokens]
        held_whole = next((place for place, key in enumerate(whole) if not self._is_whole[key]), len(whole))
        for key in whole[held_whole:]:
            self._is_whole[key] = 1
        for key in keys:
            self.uses[key] += 1
        reused = reusable_tokens(input_tokens, self.block_tokens, held_whole)
        self.known_tokens += input_tokens
        self.known_blocks += len(keys)
        self.held_blocks += held
        self.whole_tokens += reused
        self.partial_tokens += min(held * self.block_tokens, input_tokens)
        self.full_hits += held == len(keys)
        return reused


def columns_of(rows: Iterable[TraceRow], block_tokens: Tokens) -> Columns:
    """Return the columns of *rows*, which come in order of arrival."""
    columns = Columns(block_tokens)
    for row in rows:
        columns.add(row)
    return columns


def stats_of(columns: Columns) -> TraceStats:
    """Return the numbers of the rows in *columns*, of which there is at least one."""
    arrivals, inputs, outputs = columns.arrivals, columns.input_tokens, columns.output_tokens
    stamps = np.unique(arrivals, return_counts=True)[1]
    return TraceStats(
        requests=len(arrivals),
        sum_input_tokens=int(inputs.sum()),
        span_s=to_seconds(int(arrivals[-1] - arrivals[0])),
        distinct_timestamps=len(stamps),
        max_same_timestamp=int(stamps.max()),
        distinct_blocks=len(columns.keys),
        oracle_reuse=_share(columns.whole_tokens, columns.known_tokens),
        oracle_reuse_partial=_share(columns.partial_tokens, columns.known_tokens),
        oracle_reuse_blocks=_share(columns.held_blocks, columns.known_blocks),
        mean_input_tokens=float(inputs.mean()),
        p99_input_tokens=float(np.percentile(inputs, 99)),
        mean_output_tokens=float(outputs.mean()),
        p99_output_tokens=float(np.percentile(outputs, 99)),
        one_token_outputs=int((outputs == 1).sum()),
        full_hits=columns.full_hits,
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
