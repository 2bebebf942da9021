"""The sizes of a window's requests, in bounded memory.

Requests of nearly the same (R, P) share a class: equal leading four bits of either, so values below 16
are exact and classes are at most 1/8 wide. Within a class W(R, P) of the mean differs from the mean
W(R, P) by about (1/8)^2 / 12 = 0.13 %, where 12,000 requests/s over 20 s would be 240,000 pairs.
"""

from typing import NamedTuple

from vertumnus.domain.units import Tokens

KEPT_BITS = 4


class SizeClass(NamedTuple):
    """Requests of nearly the same size."""

    requests: int
    uncached_tokens: Tokens
    """R, the mean over the class."""
    cached_tokens: Tokens
    """P, the mean over the class."""


class SizeHistogram:
    """Counts requests by class of (R, P)."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], tuple[int, Tokens, Tokens]] = {}

    def add(self, uncached: Tokens, cached: Tokens) -> None:
        """Count one request with R = *uncached* >= 1 and P = *cached* tokens."""
        key = _leading(uncached), _leading(cached)
        requests, all_uncached, all_cached = self._sums.get(key, (0, 0, 0))
        self._sums[key] = requests + 1, all_uncached + uncached, all_cached + cached

    def classes(self) -> tuple[SizeClass, ...]:
        """Return the classes counted so far, in order of first appearance."""
        return tuple(
            SizeClass(requests, round(uncached / requests), round(cached / requests))
            for requests, uncached, cached in self._sums.values()
        )


def _leading(tokens: Tokens) -> int:
    """Return *tokens* with all but its leading bits cleared."""
    dropped = max(0, tokens.bit_length() - KEPT_BITS)
    return tokens >> dropped << dropped
