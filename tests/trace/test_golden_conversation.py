"""The published Mooncake conversation trace gives the published numbers, to the last digit."""

import pytest

from tests.support.shared import SHARED
from tests.support.traces import a_workload, trace_stats
from vertumnus.domain.errors import ConfigError
from vertumnus.trace.blocks import to_requests
from vertumnus.trace.config import ArrivalConfig
from vertumnus.trace.load import LoadedTrace, load_rows
from vertumnus.trace.oracle import OracleCache

PATH = SHARED / "data/traces/mooncake_conversation_trace.jsonl.gz" if SHARED else None
pytestmark = pytest.mark.skipif(
    PATH is None or not PATH.is_file(), reason="the conversation trace is not beside the checkout"
)


@pytest.fixture(scope="module")
def trace() -> LoadedTrace:
    """The whole trace, as it is."""
    return load_rows(a_workload(path=str(PATH)), ArrivalConfig(), seed=0)


def test_the_numbers_of_the_trace(trace: LoadedTrace) -> None:
    """Counts are exact; shares agree in all six published digits."""
    stats = trace_stats(trace.rows, 512)
    assert (stats.requests, stats.sum_input_tokens, stats.span_s) == (12_031, 144_793_823, 3_536.999)
    assert (stats.distinct_timestamps, stats.max_same_timestamp, stats.distinct_blocks) == (
        1_180,
        28,
        182_790,
    )
    assert (stats.one_token_outputs, stats.full_hits) == (72, 118)
    shares = (stats.oracle_reuse, stats.oracle_reuse_partial, stats.oracle_reuse_blocks)
    assert [f"{share:.6f}" for share in shares] == ["0.373380", "0.373624", "0.366412"]


def test_the_oracle_row_by_row_agrees(trace: LoadedTrace) -> None:
    """Summing what each request could reuse gives the whole-block share, with R >= 1 throughout."""
    oracle = OracleCache(512)
    reused = total = 0
    for request in to_requests(trace.rows, 512):
        cached = oracle.reusable_tokens(request)
        assert cached is not None and 0 <= cached < request.input_tokens
        reused, total = reused + cached, total + request.input_tokens
    assert f"{reused / total:.6f}" == "0.373380"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"unit": "s"}, "must be ms: the 12,031 rows span 59 min as ms, 41 days as s"),
        ({"block_tokens": 16}, "512 would fit them all"),
    ],
)
def test_a_wrong_unit_or_block_size_stops(fields: dict[str, object], message: str) -> None:
    """Case 2: the message has the implied span, or the size that fits."""
    with pytest.raises(ConfigError) as error:
        load_rows(a_workload(path=str(PATH), **fields), ArrivalConfig(), seed=0)
    assert message in str(error.value)


def test_scaled_tokens_keep_the_blocks(trace: LoadedTrace) -> None:
    """At 1/16 every row still has one id for each 32-token block."""
    scaled = load_rows(a_workload(path=str(PATH), token_scale=1 / 16), ArrivalConfig(), seed=0)
    assert scaled.block_tokens == 32
    assert all(len(row.block_ids or ()) == -(-row.input_tokens // 32) for row in scaled.rows)
    assert [row.block_ids for row in scaled.rows] == [row.block_ids for row in trace.rows]
