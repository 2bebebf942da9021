"""Statistics of a trace: its shape over time and lengths, hot prefixes, and what is worth a remark."""

import numpy as np
import pytest
from hypothesis import given

from tests.support.traces import a_row, prefix_trees, rows_at, stamps
from vertumnus.trace.details import TraceDetails, details_of
from vertumnus.trace.remarks import remarks
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.stats import columns_of

S = 10**9


def _details(rows: list[TraceRow], block_tokens: int = 512) -> TraceDetails:
    return details_of(columns_of(rows, block_tokens))


def test_bins_of_time_hold_requests_tokens_and_reuse() -> None:
    """Six requests in 95 s: bins of 2 s; the last one is 1 s long, and empty ones have no reuse."""
    rows = [a_row(at * S, 1_024 + n, 1, (0, 1, 2 + n)) for n, at in enumerate((0, 1, 2, 3, 94, 95))]
    details = _details(rows)
    bins = {bin.start_s: bin for bin in details.over_time}
    assert details.bin_s == 2.0 and len(bins) == 48
    assert [bins[start].requests for start in (0.0, 2.0, 4.0, 94.0)] == [2, 2, 0, 2]
    assert bins[0.0].oracle_reuse == 1_024 / (2_048 + 1)
    assert bins[4.0].oracle_reuse is None and bins[4.0].input_tokens == 0
    assert (bins[92.0].length_s, bins[94.0].length_s) == (2.0, 1.0)


@given(stamps())
def test_every_request_is_in_one_bin(arrivals: list[int]) -> None:
    """Bins cover the span without gaps, at most 48 of them."""
    details = _details(rows_at(*arrivals))
    assert sum(bin.requests for bin in details.over_time) == len(arrivals)
    assert sum(bin.input_tokens for bin in details.over_time) == details.sum_input_tokens
    assert len(details.over_time) <= 48
    assert [bin.start_s for bin in details.over_time] == [
        n * details.bin_s for n in range(len(details.over_time))
    ]


def test_a_trace_of_months_has_bins_of_whole_days() -> None:
    """100 days need bins of 3 days."""
    assert _details(rows_at(0, 100 * 86_400 * S)).bin_s == 3 * 86_400


def test_lengths_are_cut_where_long_prompts_begin() -> None:
    """32,767 tokens are not long, 32,768 are; shares are of requests and of tokens."""
    details = _details([a_row(0, tokens, 1, None) for tokens in (1_023, 1_024, 32_767, 32_768)])
    shares = {bin.below_tokens: (bin.request_share, bin.token_share) for bin in details.lengths}
    total = 1_023 + 1_024 + 32_767 + 32_768
    assert shares[1_024] == (0.25, 1_023 / total)
    assert shares[4_096] == (0.25, 1_024 / total)
    assert shares[65_536] == (0.25, 32_768 / total)
    assert (details.long_request_share, details.long_token_share) == (0.25, 32_768 / total)


def test_hot_prefixes_end_where_prompts_part() -> None:
    """Twenty prompts share block 0; twelve of them go on alike for 3 blocks, eight part at once."""
    agents = [a_row(0, 2_048, 1, (0, 1, 2, 100 + n)) for n in range(12)]
    others = [a_row(0, 1_024, 1, (0, 200 + n)) for n in range(8)]
    families = _details([*agents, *others]).families
    assert [(family.prefix_tokens, family.requests) for family in families] == [(512, 20), (1_536, 12)]
    assert families[1].request_share == 0.6


@given(prefix_trees(block_tokens=8))
def test_a_hot_prefix_is_a_path_that_many_prompts_have(rows: list[TraceRow]) -> None:
    """Its number of requests is the number of rows that begin with some path of its length."""
    counts = {
        (size, sum(other.block_ids[:size] == row.block_ids[:size] for other in rows if other.block_ids))
        for row in rows
        if row.block_ids
        for size in range(1, len(row.block_ids) + 1)
    }
    for family in _details(rows, 8).families:
        assert family.requests >= 2
        assert (family.prefix_tokens // 8, family.requests) in counts


def test_ticks_are_remarked() -> None:
    """Forty requests on eight stamps; thirty different stamps are no ticks."""
    ticks = _details(rows_at(*(n // 5 * 3 * S for n in range(40))))
    (found,) = remarks(ticks)
    assert found.startswith("ticks: 40 requests share 8 stamps, 3 s apart on average, up to 5 at once;")
    assert remarks(_details(rows_at(*(n * S for n in range(30))))) == []
    (alone,) = remarks(_details(rows_at(*[7] * 30)))
    assert alone.startswith("all requests share one stamp")


def test_a_slow_head_is_remarked() -> None:
    """Case 4: 20 h at 0.03 req/s, then 4 h at 1 req/s; start_s names the end of the head."""
    head = np.arange(0, 20 * 3_600, 33) * S
    busy = np.arange(20 * 3_600, 24 * 3_600, 1) * S
    (found,) = remarks(_details(rows_at(*head.tolist(), *busy.tolist())))
    assert (
        found == "a slow head: 0.03 req/s in the first 20 h, 0.19 req/s over all; start_s=72000 leaves it out"
    )


@pytest.mark.parametrize(("skipped", "empty", "count"), [(0, 0, 1), (3, 0, 2), (3, 5, 3)])
def test_what_was_left_out_and_what_is_unknown_is_remarked(skipped: int, empty: int, count: int) -> None:
    """Cases 4 and 5: rows without ids, without output, and bad ones."""
    details = _details([a_row(n * S, 10, 1, None) for n in range(3)])
    assert len(remarks(details, skipped, empty)) == count
    assert remarks(details, skipped, empty)[-1].startswith("no block ids: reuse is unknown")
