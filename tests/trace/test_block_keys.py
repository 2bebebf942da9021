"""Keys, tokens and the oracle: equal prefixes and nothing else are shared, in whole blocks only."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.traces import a_row, prefix_trees, trace_stats
from vertumnus.trace.blocks import ChainedKeys, ContentKeys, to_requests
from vertumnus.trace.config import SloBucket, SloConfig
from vertumnus.trace.oracle import OracleCache
from vertumnus.trace.prompts import PromptTokens, live_prompts
from vertumnus.trace.rows import TraceRow, shrink

B = 8
TREES = prefix_trees(block_tokens=B)


@given(TREES)
def test_chained_keys_are_equal_for_equal_paths_only(rows: list[TraceRow]) -> None:
    """A key stands for one whole prefix: same key, same path, and the other way round."""
    chained = ChainedKeys()
    path_of: dict[int, tuple[int, ...]] = {}
    for row in rows:
        assert row.block_ids is not None
        keys = chained.keys(row.block_ids, row.input_tokens, B)
        assert len(keys) == row.input_tokens // B
        for place, key in enumerate(keys):
            path = row.block_ids[: place + 1]
            assert path_of.setdefault(key, path) == path
    assert len(set(path_of.values())) == len(path_of)
    assert sorted(path_of) == list(range(len(chained)))


def test_the_same_id_below_another_parent_is_another_block() -> None:
    """An id alone is no identity: what came before it counts."""
    chained = ChainedKeys()
    assert chained.chain([1, 7]) == (0, 1)
    assert chained.chain([2, 7]) == (2, 3)
    assert chained.chain([1, 7, 7]) == (0, 1, 4)


@given(TREES, st.integers(0, 2**31))
def test_content_keys_on_generated_tokens_match_chained_keys(rows: list[TraceRow], seed: int) -> None:
    """Interned in order of appearance, both kinds of key are even the same numbers."""
    requests = to_requests(rows, B)
    prompts = live_prompts(rows, vocab_size=50_000, block_tokens=B, seed=seed)
    for request, prompt in zip(requests, prompts, strict=True):
        assert prompt.request == request
        assert prompt.tokens.shape == (request.input_tokens,)


def test_content_keys_need_the_whole_prefix() -> None:
    """A changed token changes its block's key and all later ones; a partial block has none."""
    keys = ContentKeys(4)
    assert keys.keys([1, 2, 3, 4, 5, 6, 7, 8, 9]) == (0, 1)
    assert keys.keys([1, 2, 3, 4, 5, 6, 7, 9]) == (0, 2)
    assert keys.keys([0, 2, 3, 4, 5, 6, 7, 8]) == (3, 4)
    assert keys.keys([1, 2, 3]) == ()
    assert keys.keys(np.array([1, 2, 3, 4])) == (0,)


def test_salts_and_block_sizes_keep_digests_apart() -> None:
    """Case 3: two traces under two salts never share a prefix, nor do two block sizes."""
    digests = [
        set(keys._interned)
        for keys in (ContentKeys(4), ContentKeys(4, b"other"), ContentKeys(2))
        if keys.keys([1, 2, 3, 4])
    ]
    assert not digests[0] & digests[1] and not digests[0] & digests[2]


def test_tokens_follow_the_path_and_the_seed() -> None:
    """Shared leading blocks are equal tokens; other paths, seeds and partial ends differ or truncate."""
    source = PromptTokens(vocab_size=1_000, block_tokens=32, seed=1)
    long = source.of(a_row(0, 70, 1, (4, 5, 6)), 0)
    assert (source.of(a_row(0, 64, 1, (4, 5)), 9) == long[:64]).all()
    assert (source.of(a_row(0, 40, 1, (4, 5)), 9) == long[:40]).all()
    assert (source.of(a_row(0, 64, 1, (3, 5)), 0)[32:] != long[32:64]).any()
    assert (PromptTokens(1_000, 32, seed=2).of(a_row(0, 70, 1, (4, 5, 6)), 0) != long).any()
    assert long.dtype == np.int64 and 0 <= long.min() <= long.max() < 1_000


def test_tokens_are_the_same_on_every_machine() -> None:
    """Integer arithmetic alone: these values are part of what a seed means."""
    assert PromptTokens(151_936, 4, seed=0).of(a_row(0, 6, 1, (0, 1)), 0).tolist() == [
        15751,
        20898,
        129485,
        115031,
        131492,
        148985,
    ]


def test_tokens_use_the_vocabulary_evenly() -> None:
    """80,000 tokens over 8 values: each comes within 3 % of its share."""
    tokens = PromptTokens(8, 1_000, seed=3).of(a_row(0, 80_000, 1, tuple(range(80))), 0)
    assert np.bincount(tokens).tolist() == pytest.approx([10_000] * 8, rel=0.03)


def test_unknown_content_shares_nothing_and_claims_nothing() -> None:
    """Case 5: lengths only give tokens of one's own, no keys, and no reuse to speak of."""
    rows = [a_row(0, 64, 1, None), a_row(1, 64, 1, None)]
    first, second = live_prompts(rows, vocab_size=1_000, block_tokens=32, seed=0)
    assert (first.tokens != second.tokens).any()
    assert first.request.block_keys is None
    assert OracleCache(32).reusable_tokens(first.request) is None
    stats = trace_stats(rows, 32)
    assert stats.oracle_reuse is None is stats.oracle_reuse_partial is None
    assert (stats.distinct_blocks, stats.full_hits) == (0, 0)


def test_requests_are_numbered_and_carry_their_targets() -> None:
    """Ids are dense in order of arrival; tau is looked up by the length before scaling."""
    slo = SloConfig(buckets=(SloBucket(below_tokens=1_024, ttft_s=1), SloBucket(ttft_s=2)), tpot_s=0.05)
    rows = [shrink(a_row(5, tokens, 33), 16) for tokens in (600, 1_024)]
    requests = list(to_requests(rows, 32, slo, token_scale=1 / 16))
    assert [request.request_id for request in requests] == [0, 1]
    assert [request.ttft_target_ns for request in requests] == [10**9, 2 * 10**9]
    assert [(r.input_tokens, r.output_tokens, r.tpot_target_ns) for r in requests] == [
        (38, 3, 50_000_000),
        (64, 3, 50_000_000),
    ]
    assert next(to_requests(rows, 32)).ttft_target_ns is None


@given(st.integers(1, 200_000), st.sampled_from([1, 2, 4, 16, 512]))
def test_shrinking_keeps_the_number_of_blocks(tokens: int, divisor: int) -> None:
    """ceil(L / B) ids fit the scaled lengths and the scaled blocks too."""
    row = shrink(a_row(0, tokens, 1), divisor)
    assert -(-row.input_tokens // (512 // divisor)) == -(-tokens // 512)
    assert row.output_tokens == 1


def test_the_oracle_recomputes_one_block_of_a_full_hit() -> None:
    """Case 12: the second prompt of two whole blocks reuses one, of two and a half both."""
    oracle = OracleCache(512)
    rows = [a_row(0, 1_024, 1, (0, 1)), a_row(0, 1_024, 1, (0, 1)), a_row(0, 1_200, 1, (0, 1, 2))]
    reused = [oracle.reusable_tokens(request) for request in to_requests(rows, 512)]
    assert reused == [0, 512, 1_024]


@given(TREES)
def test_stats_and_the_oracle_row_by_row_agree(rows: list[TraceRow]) -> None:
    """Partial blocks never raise the whole-block share; P < L throughout."""
    oracle = OracleCache(B)
    reused = [oracle.reusable_tokens(request) for request in to_requests(rows, B)]
    assert all(p is not None and p < row.input_tokens for p, row in zip(reused, rows, strict=True))
    stats = trace_stats(rows, B)
    assert stats.oracle_reuse == sum(p or 0 for p in reused) / stats.sum_input_tokens
    assert stats.oracle_reuse_partial is not None and stats.oracle_reuse <= stats.oracle_reuse_partial
