"""Token ids for traces that have none: equal prefixes get equal tokens, other blocks differ.

A block's tokens follow from the path of ids that leads to it and from the seed, by integer
arithmetic alone, so that they are the same on every machine. The live engine hashes tokens and
knows nothing of ids; the reuse that it finds is the trace's own.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertumnus.domain.request import Request, blocks_for
from vertumnus.domain.units import RequestId, Tokens
from vertumnus.trace.blocks import ContentKeys, to_request
from vertumnus.trace.config import SloConfig
from vertumnus.trace.rows import TraceRow

STATE_BYTES = 8
_STRIDE = np.uint64(0x9E3779B97F4A7C15)
"""From one place of SplitMix64's sequence to the next."""


class Prompt(NamedTuple):
    """A request of a live run and what it says."""

    request: Request
    tokens: NDArray[np.int64]
    """Shape (L,), each in [0, vocab_size)."""


class PromptTokens:
    """Deterministic token ids for the rows of a trace.

    Blocks of n tokens differ up to a chance of vocab_size**-n for each pair: with blocks of one or
    two tokens, some that should differ will be equal.
    """

    def __init__(self, vocab_size: int, block_tokens: Tokens, seed: int) -> None:
        self.vocab_size = vocab_size
        self.block_tokens = block_tokens
        self._key = seed.to_bytes(STATE_BYTES, "little", signed=True)

    def of(self, row: TraceRow, request_id: RequestId) -> NDArray[np.int64]:
        """Return the tokens of *row*, shape (L,); its own alone where its block ids are unknown."""
        if row.block_ids is None:
            states = self._chain(b"request", [request_id] * blocks_for(row.input_tokens, self.block_tokens))
        else:
            states = self._chain(b"blocks", row.block_ids)
        counters = np.arange(1, self.block_tokens + 1, dtype=np.uint64)
        mixed = _mix(np.add.outer(states, counters * _STRIDE)).reshape(-1)
        return (mixed[: row.input_tokens] % np.uint64(self.vocab_size)).astype(np.int64)

    def _chain(self, origin: bytes, block_ids: Iterable[int]) -> NDArray[np.uint64]:
        """Return one 64-bit state for each block, which depends on all ids up to it."""
        state, states = origin, []
        for block_id in block_ids:
            state = blake2b(b"%b/%d" % (state, block_id), digest_size=STATE_BYTES, key=self._key).digest()
            states.append(state)
        return np.frombuffer(b"".join(states), dtype="<u8")


def live_prompts(
    rows: Iterable[TraceRow],
    *,
    vocab_size: int,
    block_tokens: Tokens,
    seed: int,
    slo: SloConfig | None = None,
    token_scale: float = 1.0,
) -> Iterator[Prompt]:
    """Yield one prompt for each row, numbered from 0, with keys from its tokens.

    *block_tokens* and the rows are those of the trace after *token_scale*. Rows without block ids
    get tokens of their own and no keys: nothing is known of what they share.
    """
    source = PromptTokens(vocab_size, block_tokens, seed)
    content = ContentKeys(block_tokens)
    for request_id, row in enumerate(rows):
        tokens = source.of(row, request_id)
        keys = None if row.block_ids is None else content.keys(tokens)
        yield Prompt(to_request(request_id, row, keys, slo, token_scale), tokens)


def _mix(states: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return SplitMix64's output for each place of its sequence (Steele, Lea and Flood, OOPSLA 2014)."""
    states = (states ^ (states >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    states = (states ^ (states >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return states ^ (states >> np.uint64(31))
