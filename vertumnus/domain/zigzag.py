"""Which rank computes which tokens of a prefill: the zigzag split of context parallelism (sec. 2.1).

R uncached tokens are cut into 2C chunks of equal size, the last ones short or empty. Rank k computes
chunks k and 2C - 1 - k: an early one with few keys to see and a late one with many, so every rank
has the same tokens and the same query-key pairs. Token indices count from the first uncached token.
"""

from collections.abc import Iterator
from typing import NamedTuple

from vertumnus.domain.units import Tokens


class Place(NamedTuple):
    """Where a token is computed."""

    rank_in_group: int
    row: int
    """Index among that rank's tokens."""


class Zigzag(NamedTuple):
    """The split of *tokens* uncached tokens over the *degree* ranks of a CP group."""

    tokens: Tokens
    """R >= 0."""
    degree: int
    """C >= 1."""

    @property
    def chunk_tokens(self) -> Tokens:
        """Tokens of a full chunk: R / 2C, rounded up."""
        return -(-self.tokens // (2 * self.degree))

    @property
    def rows(self) -> Tokens:
        """Rows that every rank sends in a gather: two full chunks, its own tokens first, then padding."""
        return 2 * self.chunk_tokens

    def chunk(self, index: int) -> range:
        """Return the tokens of chunk *index*, 0 <= index < 2C."""
        size = self.chunk_tokens
        return range(min(index * size, self.tokens), min((index + 1) * size, self.tokens))

    def chunks_of(self, rank_in_group: int) -> tuple[range, range]:
        """Return the two chunks of a rank, the early one first.

        The late chunk is empty unless the early one is full, so a rank's tokens have no gap between.
        """
        return self.chunk(rank_in_group), self.chunk(2 * self.degree - 1 - rank_in_group)

    def tokens_of(self, rank_in_group: int) -> tuple[Tokens, ...]:
        """Return the tokens of a rank in the order of its rows: local -> global."""
        early, late = self.chunks_of(rank_in_group)
        return (*early, *late)

    def place(self, token: Tokens) -> Place:
        """Return the rank and row that compute *token*: global -> local."""
        chunk, within = divmod(token, self.chunk_tokens)
        if chunk < self.degree:
            return Place(chunk, within)
        return Place(2 * self.degree - 1 - chunk, self.chunk_tokens + within)

    def gathered_chunks(self) -> Iterator[tuple[int, range]]:
        """Yield, for each chunk that is not empty, the rank that sent it and its rows there.

        In this order the rows are the tokens 0 .. R - 1.
        """
        for chunk in filter(None, map(self.chunk, range(2 * self.degree))):
            place = self.place(chunk.start)
            yield place.rank_in_group, range(place.row, place.row + len(chunk))
