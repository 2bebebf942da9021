"""Prompts that are there as text: how many tokens, and which blocks they share.

A token is taken to be a fixed number of characters, which no tokenizer does, but which keeps what
matters here: texts that begin alike share their leading blocks, and lengths are proportional.
"""

from hashlib import blake2b
from math import ceil
from typing import NamedTuple

from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import Tokens
from vertumnus.trace.formats.fields import RowError
from vertumnus.trace.formats.format import Reading

ID_BYTES = 8
"""An id has 63 bits: two of a million blocks are equal by chance once in 18 million traces."""
_ID_MASK = 2**63 - 1


class TextBlocks(NamedTuple):
    """A text as a trace tells it."""

    tokens: Tokens
    block_ids: tuple[int, ...]
    """One for each block, root first, a partial last one included; equal for equal texts up to there."""


def text_blocks(text: str, reading: Reading) -> TextBlocks:
    """Return the length and the block ids of *text*. Raises RowError when there is no text."""
    if not text:
        raise RowError("the prompt is empty")
    tokens = count_tokens(text, reading.chars_per_token)
    digest, ids = blake2b(digest_size=ID_BYTES), []
    for block in range(blocks_for(tokens, reading.block_tokens)):
        digest.update(_slice(text, block, reading).encode("utf-8", "surrogatepass"))
        ids.append(int.from_bytes(digest.digest(), "little") & _ID_MASK)
    return TextBlocks(tokens, tuple(ids))


def count_tokens(text: str, chars_per_token: float) -> Tokens:
    """Return the tokens that *text* is taken to have."""
    return ceil(len(text) / chars_per_token)


def _slice(text: str, block: int, reading: Reading) -> str:
    chars = reading.block_tokens * reading.chars_per_token
    return text[int(block * chars) : int((block + 1) * chars)]
