"""The views in other benchmarks' names say what the tables say, in those names' units."""

import json
from pathlib import Path

import duckdb
import pytest

from tests.support.recorded import a_header, a_history, a_run, a_ulid
from tests.support.sweeps import BESIDES_S, a_config, a_timed_run
from vertumnus.cli import main
from vertumnus.records.config import Measurement
from vertumnus.report.aliases import ALIASES
from vertumnus.report.store import query, rebuild_catalog

HEADER = a_header(records=Measurement(warmup_share=0.25, length_bounds=(64, 256)))


def test_vllms_names_count_milliseconds_of_measured_requests(tmp_path: Path) -> None:
    """Means and percentiles are those of the runs table, times a thousand."""
    a_run(tmp_path, a_ulid(1), a_history(12), HEADER)
    (run,) = query(tmp_path, "FROM runs").dicts()
    (row,) = query(tmp_path, "FROM vllm_bench").dicts()
    assert (row["run_id"], row["completed"], row["failed"]) == (a_ulid(1), run["measured_requests"], 0) == (
        a_ulid(1), 9, 0,
    )  # fmt: skip
    for alias, column in (("mean_ttft_ms", "ttft_mean_s"), ("median_ttft_ms", "ttft_p50_s"),
                          ("p99_ttft_ms", "ttft_p99_s"), ("mean_tpot_ms", "tpot_mean_s")):  # fmt: skip
        assert row[alias] == pytest.approx(1_000 * run[column]), alias
    assert row["request_throughput"] == pytest.approx(run["requests_per_s"])
    assert row["duration"] == pytest.approx(run["measured_s"])
    assert row["total_token_throughput"] == pytest.approx(
        (row["total_input_tokens"] + row["total_output_tokens"]) / row["duration"]
    )


def test_aiperfs_tags_have_units_and_statistics(tmp_path: Path) -> None:
    """Four requests of one TTFT: all statistics are that, the spread is 0; counts are in avg."""
    a_timed_run(tmp_path, 1, ("seed=0",), a_config("paper", 0), prefill_s=2.0)
    rows = {row["tag"]: row for row in query(tmp_path, "FROM aiperf").dicts()}
    ttft = rows["time_to_first_token"]
    assert ttft["unit"] == "ms"
    expected = pytest.approx(1_000 * (2.0 + BESIDES_S))
    assert [ttft[name] for name in ("avg", "min", "max", "p50", "p90", "p99")] == [expected] * 6
    assert ttft["std"] == pytest.approx(0.0)
    assert rows["input_sequence_length"]["avg"] == 40
    assert (rows["request_count"]["avg"], rows["request_count"]["p50"]) == (4, None)
    assert rows["error_request_count"]["avg"] == 0
    assert rows["request_throughput"]["unit"] == "requests/sec"


def test_views_are_empty_without_runs_and_in_the_catalog_with_them(tmp_path: Path) -> None:
    """No runs is no row, not an error; other programs find the views in the file."""
    for alias in ALIASES:
        assert query(tmp_path, f"FROM {alias}").rows == []
    a_run(tmp_path, a_ulid(1), a_history(6), HEADER)
    with duckdb.connect(str(rebuild_catalog(tmp_path)), read_only=True) as connection:
        for alias in ALIASES:
            assert connection.execute(f"SELECT count(*) > 0 FROM {alias}").fetchall() == [(True,)]


@pytest.mark.parametrize("alias", ALIASES)
def test_each_view_is_a_report_of_a_run(
    alias: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the run that is asked for, and of no other."""
    a_run(tmp_path, a_ulid(1), a_history(6), HEADER)
    a_run(tmp_path, a_ulid(2), a_history(9), HEADER)
    assert main(["report", alias, a_ulid(1), "--json", "--runs-dir", str(tmp_path)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows and {row["run_id"] for row in rows} == {a_ulid(1)}
