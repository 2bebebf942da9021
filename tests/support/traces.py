"""Builders of trace rows and of small trace files, and strategies that draw them."""

import json
from collections.abc import Iterable
from pathlib import Path

from hypothesis import strategies as st

from vertumnus.domain.request import blocks_for
from vertumnus.trace.config import WorkloadConfig
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.stats import TraceStats, columns_of, stats_of


def a_row(
    arrival_ns: int = 0,
    input_tokens: int = 1_024,
    output_tokens: int = 1,
    block_ids: tuple[int, ...] | None = (0, 1),
) -> TraceRow:
    """Return a row of two whole blocks of 512 unless told otherwise."""
    return TraceRow(arrival_ns, input_tokens, output_tokens, block_ids)


def trace_stats(rows: Iterable[TraceRow], block_tokens: int) -> TraceStats:
    """Return the numbers of *rows*, of which there is at least one, in order of arrival."""
    return stats_of(columns_of(rows, block_tokens))


def rows_at(*arrivals_ns: int) -> list[TraceRow]:
    """Return one row for each arrival; the output length numbers them from 1."""
    return [a_row(arrival, output_tokens=number) for number, arrival in enumerate(arrivals_ns, 1)]


def a_workload(**fields: object) -> WorkloadConfig:
    """Return the tool-agent workload with *fields* changed."""
    return WorkloadConfig(**{"name": "test", "purpose": "a test", "generator": "tool_agent", **fields})  # type: ignore[arg-type]


def a_line(**fields: object) -> str:
    """Return a Mooncake line of 1,000 input tokens in two blocks with *fields* changed; None drops one."""
    record = {"timestamp": 0, "input_length": 1_000, "output_length": 9, "hash_ids": [0, 1], **fields}
    return json.dumps({key: value for key, value in record.items() if value is not None})


def write_trace(path: Path, *lines: str, end: str = "\n") -> Path:
    """Write *lines* to *path* and return it."""
    path.write_text("\n".join(lines) + end)
    return path


def stamps(max_size: int = 40) -> st.SearchStrategy[list[int]]:
    """Draw ascending arrivals with ties [ns]."""
    return st.lists(
        st.integers(0, 20).map(lambda tick: tick * 3_050_000_000), min_size=1, max_size=max_size
    ).map(sorted)


@st.composite
def prefix_trees(draw: st.DrawFn, block_tokens: int) -> list[TraceRow]:
    """Draw rows whose ids share prefixes, with lengths that end anywhere in the last block."""
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        ids = tuple(draw(st.lists(st.integers(0, 2), min_size=1, max_size=5)))
        last = draw(st.integers(1, block_tokens))
        tokens = (len(ids) - 1) * block_tokens + last
        assert blocks_for(tokens, block_tokens) == len(ids)
        rows.append(a_row(0, tokens, 1, ids))
    return rows
