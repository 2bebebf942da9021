"""Chained block keys: equal keys mean equal prefixes, and a key has exactly one parent.

Only whole blocks get keys, since only they can be cached. Keys are dense integers, interned in
order of first appearance, so that every decision downstream compares small ints.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from vertumnus.domain.request import Request
from vertumnus.domain.units import BlockKey, Tokens
from vertumnus.trace.config import SloConfig
from vertumnus.trace.rows import TraceRow

_ROOT: BlockKey = -1
"""The parent of every first block; no block's own key."""
DIGEST_BYTES = 16


class ChainedKeys:
    """Keys from a trace's block ids: one key for each pair of parent key and block id."""

    def __init__(self) -> None:
        self._interned: dict[tuple[BlockKey, int], BlockKey] = {}

    def __len__(self) -> int:
        return len(self._interned)

    def parents(self) -> NDArray[np.int64]:
        """Return the parent of each key, shape (keys,); -1 for the keys of first blocks."""
        return np.fromiter((parent for parent, _ in self._interned), dtype=np.int64, count=len(self))

    def chain(self, block_ids: Iterable[int]) -> tuple[BlockKey, ...]:
        """Return one key for each of *block_ids*, root first."""
        interned, parent, keys = self._interned, _ROOT, []
        for block_id in block_ids:
            parent = interned.setdefault((parent, block_id), len(interned))
            keys.append(parent)
        return tuple(keys)

    def keys(
        self, block_ids: Sequence[int], input_tokens: Tokens, block_tokens: Tokens
    ) -> tuple[BlockKey, ...]:
        """Return the keys of the floor(input_tokens / block_tokens) whole blocks, root first."""
        return self.chain(block_ids[: input_tokens // block_tokens])


class ContentKeys:
    """Keys from token ids, by a hash chained over parent, tokens and salt.

    Two salts, or two block sizes, never share a key's digest: caches of one never hit for the other.
    """

    def __init__(self, block_tokens: Tokens, salt: bytes = b"") -> None:
        self.block_tokens = block_tokens
        self._root = blake2b(b"%d:%b" % (block_tokens, salt), digest_size=DIGEST_BYTES).digest()
        self._interned: dict[bytes, BlockKey] = {}

    def keys(self, tokens: Sequence[int] | NDArray[np.int64]) -> tuple[BlockKey, ...]:
        """Return the keys of the whole blocks of *tokens*, root first."""
        content = np.asarray(tokens, dtype="<i8").tobytes()
        block_bytes = 8 * self.block_tokens
        interned, digest, keys = self._interned, self._root, []
        for end in range(block_bytes, len(content) + 1, block_bytes):
            block = content[end - block_bytes : end]
            digest = blake2b(digest + block, digest_size=DIGEST_BYTES).digest()
            keys.append(interned.setdefault(digest, len(interned)))
        return tuple(keys)


def to_requests(
    rows: Iterable[TraceRow], block_tokens: Tokens, slo: SloConfig | None = None, token_scale: float = 1.0
) -> Iterator[Request]:
    """Yield one request for each row, numbered from 0, with keys from the rows' block ids.

    *block_tokens* and the rows are those of the trace after *token_scale*. Rows without block ids
    become requests without keys.
    """
    chained = ChainedKeys()
    for request_id, row in enumerate(rows):
        keys = None
        if row.block_ids is not None:
            keys = chained.keys(row.block_ids, row.input_tokens, block_tokens)
        yield to_request(request_id, row, keys, slo, token_scale)


def to_request(
    request_id: int,
    row: TraceRow,
    block_keys: tuple[BlockKey, ...] | None,
    slo: SloConfig | None,
    token_scale: float,
) -> Request:
    """Return *row* as a request with these keys, and the targets that *slo* has for its length."""
    return Request(
        request_id=request_id,
        arrival_ns=row.arrival_ns,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        block_keys=block_keys,
        ttft_target_ns=slo.ttft_target_ns(row.input_tokens, token_scale) if slo else None,
        tpot_target_ns=slo.tpot_target_ns() if slo else None,
    )
