"""The ladder of lengths: every rung as often, cached beginnings left just before, gaps for the longest."""

from collections import Counter
from itertools import pairwise

import pytest

from vertumnus.trace.blocks import to_requests
from vertumnus.trace.config import SloBucket, SloConfig
from vertumnus.trace.drafts import BLOCK_TOKENS
from vertumnus.trace.ladder import GAP_NS, GAP_PER_TOKEN_NS, LENGTHS, REPEATS, ladder
from vertumnus.trace.oracle import OracleCache

SLO = SloConfig(buckets=(SloBucket(ttft_s=1.0),))


def rungs(seed: int) -> list[tuple[int, int]]:
    """Return (L, P) of every prompt with an unlimited cache."""
    oracle = OracleCache(BLOCK_TOKENS)
    requests = to_requests(ladder(seed), BLOCK_TOKENS, SLO, 1.0)
    return [(request.input_tokens, oracle.reusable_tokens(request) or 0) for request in requests]


@pytest.mark.parametrize("seed", [0, 7])
def test_every_length_comes_whole_and_with_each_cached_quarter(seed: int) -> None:
    """64K with 0, 16K, 32K and 48K cached, REPEATS times each; 1K only with half, which is one block."""
    found = Counter(rungs(seed))
    for length in LENGTHS:
        assert found[length, 0] >= REPEATS  # a quarter of a longer one may be as long
    assert [found[65_536, cached] for cached in (16_384, 32_768, 49_152)] == [REPEATS] * 3
    assert [cached for length, cached in found if length == 1_024 and cached] == [512]


def test_seeds_change_the_order_and_nothing_else() -> None:
    """The same prompts and the same time, another order."""
    one, other = ladder(0), ladder(1)
    assert [row.input_tokens for row in one] != [row.input_tokens for row in other]
    assert Counter(rungs(0)) == Counter(rungs(1))
    assert ladder(0) == one


def test_the_gap_after_a_prompt_grows_with_it() -> None:
    """Nobody arrives before the prompt before it had its time."""
    rows = ladder(3)
    for row, after in pairwise(rows):
        assert after.arrival_ns - row.arrival_ns == GAP_NS + GAP_PER_TOKEN_NS * row.input_tokens
