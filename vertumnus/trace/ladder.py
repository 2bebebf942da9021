"""A ladder of prompt lengths, one prompt at a time, whole and with a cached beginning (Figs. 2 and 4).

Each length comes as a prompt that shares nothing, and again for each share of it that a prompt before it has
just left in the cache. Gaps grow with the prompt, so that none waits for another where a prefill takes less.
"""

from collections.abc import Iterator
from itertools import count

from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import SECOND, Nanoseconds, Tokens
from vertumnus.trace.drafts import BLOCK_TOKENS
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.sampling import stream

LENGTHS: tuple[Tokens, ...] = (1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536)
CACHED_QUARTERS = (1, 2, 3)
"""Of a length, rounded down to whole blocks."""
REPEATS = 3
GAP_NS: Nanoseconds = 2 * SECOND
GAP_PER_TOKEN_NS: Nanoseconds = 460_000
"""30 s for the longest prompt."""


def ladder(seed: int) -> list[TraceRow]:
    """Return the prompts in order of arrival: every rung REPEATS times, in an order that *seed* shuffles."""
    random = stream(seed, "ladder")
    rungs, fresh = list(_rungs()), count()
    rows: list[TraceRow] = []
    at: Nanoseconds = 0
    for _ in range(REPEATS):
        for place in random.permutation(len(rungs)).tolist():
            length, cached = rungs[place]
            for tokens, ids in _prompts(length, cached, fresh):
                rows.append(TraceRow(at, tokens, 1, ids))
                at += GAP_NS + GAP_PER_TOKEN_NS * tokens
    return rows


def _rungs() -> Iterator[tuple[Tokens, Tokens]]:
    """Yield each length with nothing cached, then with each cached beginning (L, P)."""
    for length in LENGTHS:
        cached = {length * quarters // 4 // BLOCK_TOKENS * BLOCK_TOKENS for quarters in CACHED_QUARTERS}
        yield from ((length, tokens) for tokens in sorted({0} | cached))


def _prompts(length: Tokens, cached: Tokens, fresh: "count[int]") -> Iterator[tuple[Tokens, tuple[int, ...]]]:
    """Yield the prompt that leaves *cached* tokens behind, if there are any, then that of *length*."""
    shared = tuple(next(fresh) for _ in range(cached // BLOCK_TOKENS))
    if shared:
        yield cached, shared
    own = blocks_for(length, BLOCK_TOKENS) - len(shared)
    yield length, (*shared, *(next(fresh) for _ in range(own)))
