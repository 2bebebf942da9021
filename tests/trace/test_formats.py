"""Every format has a hand-made file with its quirks; the rows are worked out by hand."""

from pathlib import Path

import pytest

from tests.support.traces import a_line, a_row, a_workload, trace_stats, write_trace
from vertumnus.domain.errors import ConfigError
from vertumnus.trace.blocks import to_requests
from vertumnus.trace.config import ArrivalConfig
from vertumnus.trace.files import TraceFiles
from vertumnus.trace.load import LoadedTrace, load_rows
from vertumnus.trace.rows import TraceRow

SAMPLES = Path(__file__).parent / "samples"
MS, S = 10**6, 10**9


def _read(name: str, **fields: object) -> list[TraceRow]:
    """Return the rows of a sample in order of arrival, at the file's own times."""
    return list(TraceFiles(a_workload(path=str(SAMPLES / name), **fields)))


def _load(path: Path, **fields: object) -> LoadedTrace:
    return load_rows(a_workload(path=str(path), **fields), ArrivalConfig(), 0)


def _problems(path: Path, **fields: object) -> list[str]:
    with pytest.raises(ConfigError) as error:
        _load(path, **fields)
    return [problem.replace(f"{path}:", "") for problem in error.value.problems]


def test_mooncake_counts_milliseconds_and_partial_blocks() -> None:
    """Four rows: equal stamps keep their order, the fourth hits in full when its partial block counts."""
    rows = _read("mooncake.jsonl")
    assert rows == [
        a_row(0, 1_200, 20, (0, 1, 2)),
        a_row(0, 600, 1, (0, 3)),
        a_row(3_052 * MS, 2_048, 7, (0, 1, 4, 5)),
        a_row(6_104 * MS, 1_200, 31, (0, 1, 2)),
    ]
    stats = trace_stats(rows, 512)
    assert (stats.full_hits, stats.one_token_outputs, stats.distinct_blocks) == (1, 1, 6)
    assert stats.oracle_reuse == (512 + 1_024 + 1_024) / 5_048
    assert stats.oracle_reuse_partial == (512 + 1_024 + 1_200) / 5_048


def test_mooncake_plus_fills_in_stamps_by_delays_and_lengths_by_texts() -> None:
    """Turns of s-1 come at 0, 2 and 3.5 s; 116 characters are 26 tokens at 4.5 each; ids may be missing."""
    rows = _read("mooncake_plus.jsonl", format="mooncake_plus")
    assert [(row.arrival_ns // MS, row.input_tokens, row.session, row.pause_ns) for row in rows] == [
        (0, 700, "s-1", None),
        (500, 300, "s-2", None),
        (2_000, 900, "s-1", 2 * S),
        (3_500, 26, "s-1", 1_500 * MS),
        (4_000, 5, None, None),
    ]
    assert [row.block_ids and len(row.block_ids) for row in rows] == [2, None, 2, 1, 1]
    assert all(row.follows == row.session for row in rows)


def test_mooncake_plus_may_have_no_times_at_all(tmp_path: Path) -> None:
    """The first row decides; a stamp further down is then a mistake, and arrivals must be asked for."""
    lines = [a_line(timestamp=None), a_line(timestamp=None, session_id=3)]
    path = write_trace(tmp_path / "t.jsonl", *lines)
    loaded = _load(path, format="mooncake_plus")
    assert not loaded.has_times and [row.arrival_ns for row in loaded.rows] == [0, 0]
    with pytest.raises(ConfigError, match=r"arrival.process: found trace, but t.jsonl .* has no times"):
        loaded.require_times(ArrivalConfig())
    loaded.require_times(ArrivalConfig(process="poisson", rate=1.0))
    write_trace(path, *lines, a_line(timestamp=7))
    assert _problems(path, format="mooncake_plus") == [
        "3: timestamp: found 7, must be missing, as it is in the first row"
    ]
    write_trace(path, a_line(timestamp=7), a_line(timestamp=None))
    assert _problems(path, format="mooncake_plus")[0].startswith("2: timestamp: missing, must be")


def test_bailian_counts_seconds_and_blocks_of_16() -> None:
    """Rows are sorted by time; both turns 2 branch from chat 159; turns of others have no parent."""
    rows = _read("bailian.jsonl", format="bailian")
    assert [(row.arrival_ns, row.session, row.follows) for row in rows] == [
        (61_114 * MS, "159", None),
        (61_114 * MS, "160", None),
        (75_250 * MS, "162", "159"),
        (75_500 * MS, "161", "159"),
    ]
    assert [len(row.block_ids or ()) for row in rows] == [3, 1, 4, 5]


@pytest.mark.parametrize(("format", "block"), [("bailian", 512), ("mooncake", 16)])
def test_another_formats_block_size_is_refused(format: str, block: int) -> None:
    """Case 2: what fits is told with the file and the line."""
    with pytest.raises(ConfigError, match=r"workload.block_tokens: found \d+, but in \d of the first 4 rows"):
        _read(f"{format}.jsonl", format=format, block_tokens=block)


def test_azure_dates_have_seven_digits_and_lines_carriage_returns() -> None:
    """Gaps are exact to 100 ns, there is no prefix data, and so no reuse is claimed (case 5)."""
    assert b"\r\n" in (SAMPLES / "azure_2023.csv").read_bytes()
    rows = _read("azure_2023.csv", format="azure")
    gaps = [row.arrival_ns - rows[0].arrival_ns for row in rows]
    assert gaps == [0, 4_314_579_000, 4_541_877_000]
    assert [(row.input_tokens, row.output_tokens, row.block_ids) for row in rows] == [
        (374, 44, None),
        (396, 109, None),
        (879, 55, None),
    ]
    stats = trace_stats(rows, 512)
    assert stats.oracle_reuse is None is stats.oracle_reuse_partial
    assert all(request.block_keys is None for request in to_requests(rows, 512))


def test_azure_dates_may_have_zones() -> None:
    """2:00:00.5 at +02:00 is half a second past midnight; rows are sorted by that."""
    rows = _read("azure_2024.csv", format="azure")
    midnight = 1_715_472_000 * S
    assert [row.arrival_ns - midnight for row in rows] == [0, 3 * MS, 500 * MS]
    assert [row.input_tokens for row in rows] == [33, 1_452, 210]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("2023-11-16 18:17,5,5", "TIMESTAMP: found '2023-11-16 18:17', must be a date and time, as"),
        ("2023-02-30 18:17:00,5,5", "TIMESTAMP: found '2023-02-30 18:17:00', must be a date and time"),
        ("2023-11-16 18:17:00,x,5", "ContextTokens: found 'x', must be a whole number below"),
        ("2023-11-16 18:17:00,0,5", "found a prompt of 0 tokens, must be at least 1"),
        ("2023-11-16 18:17:00,5,-5", "GeneratedTokens: found '-5', must be a whole number below"),
        ("2023-11-16 18:17:00,5", "found 2 cells, must be 3 as in the header"),
    ],
)
def test_a_bad_line_of_a_table_is_named_or_skipped(tmp_path: Path, line: str, problem: str) -> None:
    """Line 2 is the first below the header."""
    head, good, *_ = (SAMPLES / "azure_2024.csv").read_text().splitlines()
    path = write_trace(tmp_path / "t.csv", head, line, good)
    (found,) = _problems(path, format="azure")
    assert found.startswith(f"2: {problem}")
    loaded = _load(path, format="azure", bad_rows="skip")
    assert (len(loaded.rows), loaded.skipped) == (1, 1)


def test_a_table_needs_its_columns(tmp_path: Path) -> None:
    """The header is looked at first; a byte order mark and further columns do no harm."""
    path = write_trace(tmp_path / "t.csv", "TIME,ContextTokens,GeneratedTokens", "1,2,3")
    assert _problems(path, format="azure") == [
        "1: the header has no column TIMESTAMP; found TIME, ContextTokens, GeneratedTokens"
    ]
    path.write_bytes(b'\xef\xbb\xbfTimestamp,Request tokens,Extra,Response tokens\n3,5,"a,b",6\n')
    assert _load(path, format="burst_gpt").rows == [a_row(0, 5, 6, None)]
    path.write_bytes(b"")
    assert "the header has no column" in _problems(path, format="azure")[0]


@pytest.mark.parametrize(("choice", "outputs"), [("drop", [18, 230, 203]), ("keep", [18, 230, 1, 203])])
def test_failed_rows_of_burst_gpt_are_dropped_or_kept_and_counted(choice: str, outputs: list[int]) -> None:
    """Case 4: the third row has no response; equal stamps of 5 s keep the file's order."""
    path = SAMPLES / "burst_gpt.csv"
    loaded = _load(path, format="burst_gpt", empty_outputs=choice)
    assert [row.output_tokens for row in loaded.rows] == outputs
    assert [row.arrival_ns for row in loaded.rows][:2] == [0, 0]
    assert "1 row without output" in loaded.description
    (problem,) = _problems(path, format="burst_gpt")
    assert problem.startswith("4: no output: found 0, must be at least 1; empty_outputs=drop")


def test_burst_gpt_totals_must_add_up_and_sessions_are_kept(tmp_path: Path) -> None:
    """The newer layout has a session, which may be empty; a total that is no sum is a bad row."""
    rows = _read("burst_gpt_sessions.csv", format="burst_gpt")
    assert [(row.arrival_ns // S, row.session, row.follows) for row in rows] == [
        (5, "a", "a"),
        (45, "a", "a"),
        (45, None, None),
    ]
    head = "Timestamp,Request tokens,Response tokens,Total tokens"
    path = write_trace(tmp_path / "t.csv", head, "1,2,3,6")
    assert _problems(path, format="burst_gpt") == [
        "2: Total tokens: found 6, must be 5 (Request tokens 2 + Response tokens 3)"
    ]


def test_share_gpt_asks_with_everything_said_before() -> None:
    """Two requests of the first conversation, one of each other; unanswered questions ask nothing."""
    trace = load_rows(
        a_workload(
            path=str(SAMPLES / "share_gpt.jsonl"), format="share_gpt", chars_per_token=4, block_tokens=4
        ),
        ArrivalConfig(process="poisson", rate=2.0),
        0,
    )
    said = "Name three primes.\n", "2, 3 and 5.\n", "And a fourth?\n"
    lengths = [-(-len(text) // 4) for text in (said[0], "".join(said))]
    assert [row.input_tokens for row in trace.rows] == [*lengths, 5, 7]
    assert [row.output_tokens for row in trace.rows] == [3, 1, 1, 2]
    assert [row.session for row in trace.rows] == ["QWJhYvA_0", "QWJhYvA_0", "begins-with-gpt", "roles"]
    first, second = trace.rows[0].block_ids or (), trace.rows[1].block_ids or ()
    assert first[:1] == second[:1] and first[1] != second[1]  # 16 of 19 characters are a whole block
    assert not trace.has_times and trace.rows[1].arrival_ns > 0


def test_l_eval_shares_the_document() -> None:
    """Three requests; both questions about the first document share its 8 whole blocks of 16 characters."""
    rows = _read("l_eval.jsonl", format="l_eval", chars_per_token=4, block_tokens=4)
    assert [row.input_tokens for row in rows] == [-(-(140 + 1 + n) // 4) for n in (12, 17)] + [9]
    first, second, third = (row.block_ids or () for row in rows)
    assert first[:8] == second[:8] and not set(first[8:]) & set(second[8:])
    assert not set(third) & set(first)


def test_a_file_without_the_columns_of_its_format_may_be_of_another(tmp_path: Path) -> None:
    """A header that is none is refused with what the line looks like."""
    path = write_trace(tmp_path / "t.jsonl", a_line())
    assert _problems(path, format="azure")[-1] == (
        f"{path}: read as azure (workload.format), its first line is mooncake's".replace(f"{path}:", "")
    )


def test_texts_of_a_row_may_be_wrong(tmp_path: Path) -> None:
    """Missing fields, unequal lists, empty prompts and an array of everything are told by line."""
    path = write_trace(
        tmp_path / "t.jsonl", '{"input": "a", "instructions": ["b", "c"], "outputs": ["d"]}', '{"input": 3}'
    )
    assert _problems(path, format="l_eval") == [
        "1: outputs: found 1, must be 2, one an instruction",
        "2: input: found 3, must be a string",
        "2: instructions: missing, must be a list of strings",
        "2: outputs: missing, must be a list of strings",
    ]
    write_trace(path, '[{"conversations": []}]', '{"conversations": [{"from": "gpt"}]}')
    first, second = _problems(path, format="share_gpt")
    assert first.startswith("1: not a JSON object:") and "jq -c '.[]'" in first
    assert second == "2: conversations[0].value: missing, must be a string"
    write_trace(path, a_line(input_length=None, text_input=""))
    assert _problems(path, format="mooncake_plus") == ["1: the prompt is empty"]


def test_mixed_traces_share_nothing(tmp_path: Path) -> None:
    """Case 3: the same ids and sessions in two files are different ones; both start at 0, by time."""
    first = write_trace(tmp_path / "a.jsonl", a_line(timestamp=90, session_id="x"), a_line(timestamp=3_090))
    second = write_trace(tmp_path / "b.jsonl", a_line(timestamp=0, session_id="x"), a_line(timestamp=1_000))
    rows = _load(first, mix=(str(second),), format="mooncake_plus").rows
    assert [row.arrival_ns // MS for row in rows] == [0, 0, 1_000, 3_000]
    assert [row.session for row in rows] == ["0/x", "1/x", None, None]
    assert trace_stats(rows, 512).distinct_blocks == 4
    assert rows[0].block_ids == rows[3].block_ids and rows[1].block_ids == rows[2].block_ids
    assert not set(rows[0].block_ids or ()) & set(rows[1].block_ids or ())
