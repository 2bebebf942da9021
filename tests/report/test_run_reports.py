"""Reports in SQL say what the metrics say; the summary says what the report holds."""

import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from tests.support.builders import a_request
from tests.support.recorded import (
    WORKERS,
    a_changing_history,
    a_header,
    a_history,
    a_life,
    a_merge,
    a_run,
    a_run_under_way,
    a_split,
    a_ulid,
    a_window,
    told_in_order,
)
from vertumnus.domain.codec import FACT, INPUT, Record
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import RequestArrived, RequestEnded, Status
from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND
from vertumnus.records.config import Measurement
from vertumnus.records.folds import RunFolds
from vertumnus.records.metrics import summarise
from vertumnus.records.planned import Planned
from vertumnus.report import commands
from vertumnus.report.drawing import console_for
from vertumnus.report.reports import answer_report, report_names
from vertumnus.report.run_report import load_report, report_json
from vertumnus.report.store import query
from vertumnus.report.summary import print_summary

HEADER = a_header(records=Measurement(warmup_share=0.15, length_bounds=(64, 256)))


def a_mixed_history() -> list[Record]:
    """Return 40 requests that finish and 3 that do not."""
    failed = []
    endings: list[tuple[int, Status]] = [(40, "failed"), (41, "rejected"), (42, "cancelled")]
    for number, status in endings:
        at = number * SECOND
        request = Request(number, at, 100 + number, 3, None, ttft_target_ns=SECOND)
        failed.append(
            [
                Record(INPUT, RequestArrived(at, request)),
                Record(FACT, RequestEnded(at + 9, number, status, 0, "no")),
            ]
        )
    return told_in_order([a_history(40), *failed])


def text_of(runs_dir: Path, run_id: str) -> str:
    """Return the summary as drawn on something that is no terminal."""
    out = io.StringIO()
    print_summary(load_report(runs_dir, run_id), console_for(out))
    return out.getvalue()


@pytest.mark.parametrize(("others", "is_said"), [(None, False), (0.2, False), (0.94, True)])
def test_a_busy_machine_is_said_beside_the_verdict(tmp_path: Path, others, is_said) -> None:
    """A run is valid where its books balance; whose times it has is another thing."""
    a_run(tmp_path, a_ulid(1), a_history(3), HEADER)
    found = load_report(tmp_path, a_ulid(1))
    found.run["others_cpu_share"] = others
    out = io.StringIO()
    print_summary(found, console_for(out))
    assert ("the machine was busy with other programs" in out.getvalue()) is is_said


def test_sql_and_metrics_agree(tmp_path: Path) -> None:
    """Attainment by bucket, breakdown and percentiles come out the same in SQL as in the metrics."""
    told = a_mixed_history()
    a_run(tmp_path, a_ulid(1), told, HEADER)
    a_run(tmp_path, a_ulid(2), a_history(9))
    folds = RunFolds(HEADER)
    folds.apply(told)
    folds.finish()
    metrics = summarise(folds.requests, HEADER.records)
    report = load_report(tmp_path, a_ulid(1))
    buckets = [(row["length_bucket"], row["requests"], row["slo_attainment"]) for row in report.buckets]
    assert buckets == [(b.name, b.requests, pytest.approx(b.slo_attainment)) for b in metrics.buckets]
    total = report.breakdown[-1]
    assert total["length_bucket"] == "all"
    parts = ("queue", "cache_wait", "prefill", "ext", "ttft")
    means = [total[f"{part}_s"] for part in parts]
    assert means == [pytest.approx(getattr(metrics, f"{part}_mean_s")) for part in parts]
    assert sum(means[:4]) == pytest.approx(means[4])
    percentiles = query(
        tmp_path,
        "SELECT unnest(quantile_cont(ttft_s, [0.5, 0.9, 0.99])) FROM requests "
        f"WHERE run_id = '{a_ulid(1)}' AND measured AND status = 'finished'",
    ).rows
    assert [p for (p,) in percentiles] == [
        pytest.approx(p) for p in (metrics.ttft_p50_s, metrics.ttft_p90_s, metrics.ttft_p99_s)
    ]
    served = sum(row["requests"] for row in report.workers)
    assert served == metrics.finished == 40


def test_the_head_says_what_was_asked_for(tmp_path: Path) -> None:
    """Policy, controller, workload, seed and offered rate; bad rows and what never arrived are counted."""
    config = {
        "policy": {"name": "paper"},
        "controller": {"name": "off"},
        "workload": {"name": "phases"},
        "seed": 3,
    }
    planned = Planned(requests=20, offered_requests_per_s=2.5, arrivals_hash="h", skipped_rows=1_234)
    a_run(tmp_path, a_ulid(1), a_history(12), replace(HEADER, config=config, seed=3), planned=planned)
    lines = text_of(tmp_path, a_ulid(1)).splitlines()
    assert lines[2] == "workload phases, policy paper, controller off, seed 3, offered 2.5 requests/s"
    assert "8 of 20 planned ones never arrived" in lines[3]
    assert lines[3].endswith("; 1,234 bad rows of the trace skipped")
    found = report_json(load_report(tmp_path, a_ulid(1)))
    assert (found["planned_requests"], found["never_arrived"], found["policy"]) == (20, 8, "paper")
    assert (found["verdict"], found["reasons"]) == ("INVALID", ["8 of 20 planned requests never arrived"])


def test_a_run_that_noted_less_is_still_told(tmp_path: Path) -> None:
    """Without a plan nothing is said of arrivals; the seed is always known."""
    a_run(tmp_path, a_ulid(1), a_history(12), replace(HEADER, config={"seed": 0}))
    lines = text_of(tmp_path, a_ulid(1)).splitlines()
    assert lines[2] == "seed 0"
    assert "never arrived" not in lines[3] and "skipped" not in lines[3]


def test_a_run_of_the_first_version_is_still_told(tmp_path: Path) -> None:
    """Its row lacks what came later: the summary says what there is."""
    run = a_run(tmp_path, a_ulid(1), a_history(12), HEADER)
    later = ["policy", "controller", "workload", "offered_requests_per_s", "served_s", "never_arrived"]
    table = pq.read_table(run.table("runs")).drop_columns([*later, "sweep", "skipped_rows"])
    pq.write_table(table, run.table("runs"))
    text = text_of(tmp_path, a_ulid(1))
    assert text.splitlines()[2] == "seed 0"
    assert re.search(r"throughput 0\.\d+ requests/s until the last end", text)


def test_the_throughput_leaves_the_last_answers_out(tmp_path: Path) -> None:
    """Two requests a second apart, first tokens at 3 and 4 s, ends at 30 and 31 s: 2 requests in 4 s."""
    lives = [
        a_life(
            a_request(n, n * SECOND), queue_ns=0, prefill_ns=2 * SECOND, ext_ns=SECOND, decode_ns=27 * SECOND
        )
        for n in range(2)
    ]
    a_run(tmp_path, a_ulid(1), told_in_order(lives))
    found = report_json(load_report(tmp_path, a_ulid(1)))
    assert (found["served_s"], found["served_requests_per_s"]) == (4.0, 0.5)
    assert found["requests_per_s"] == pytest.approx(2 / 31)
    assert (
        "throughput 0.5 requests/s, 20 input tokens/s, over the 4.0 s from the first measured arrival "
        "to the last first token"
    ) in text_of(tmp_path, a_ulid(1))


def test_the_json_report(tmp_path: Path) -> None:
    """The promised keys are there, with the run's numbers."""
    a_run(tmp_path, a_ulid(1), a_mixed_history(), HEADER)
    found = report_json(load_report(tmp_path, a_ulid(1)))
    assert (found["run_id"], found["verdict"], found["requests"]) == (a_ulid(1), "VALID", 43)
    assert set(found["ttft_s"]) == {"mean", "p50", "p90", "p99"}
    assert found["by_status"] == {
        "finished": 40,
        "failed": 1,
        "rejected": 1,
        "cancelled": 1,
        "interrupted": 0,
    }
    assert 0 < found["slo_attainment"] < 1
    assert (found["hit_rate"], found["wall_s"], found["sim_requests_per_s"]) == (0.0, 0.5, 86.0)
    assert 0 < found["oracle_hit_rate"] < 1
    assert found["ttft_all_s"]["p99"] is None
    assert sum(found["ttft_parts_s"].values()) == pytest.approx(found["ttft_s"]["mean"])


def test_the_summary_says_what_matters(tmp_path: Path) -> None:
    """Simulated or executed, all latencies, attainment, hit rates, workers, verdict and where it lies."""
    a_run(tmp_path, a_ulid(1), a_mixed_history(), HEADER)
    text = text_of(tmp_path, a_ulid(1))
    for said in (
        "SIMULATED  trial",
        "43 requests: 40 finished, 1 failed, 1 rejected, 1 cancelled",
        "P90",
        "queue",
        ">=256",
        "hit rate 0.0 % (an unlimited shared cache:",
        "0x2",
        "requests/s",
        "VALID (finished)",
        str(tmp_path / a_ulid(1)),
        'vertumnus sql "SELECT',
    ):
        assert said in text
    assert "\x1b" not in text


def test_the_suggested_query_works(tmp_path: Path) -> None:
    """The SQL line that the summary offers can be run as it stands."""
    a_run(tmp_path, a_ulid(1))
    (line,) = [line for line in text_of(tmp_path, a_ulid(1)).splitlines() if line.startswith("try:")]
    assert query(tmp_path, line.split('"')[1]).rows


def test_a_live_run_is_executed_and_an_invalid_one_says_why(tmp_path: Path) -> None:
    """The header tells measured from simulated; reasons follow the verdict."""
    _, recorder = a_run_under_way(tmp_path, a_ulid(1), a_history(3)[:-2], a_header("live"))
    recorder.finish("interrupted", None, wall_s=2.0)
    text = text_of(tmp_path, a_ulid(1))
    assert text.startswith("EXECUTED  trial")
    assert "INVALID (interrupted)" in text
    assert "- 2 of 3 requests did not end" in text
    assert "- the run ended without closing its books" in text


def test_an_empty_run_prints_no_data(tmp_path: Path) -> None:
    """A run without requests has a summary, not a crash."""
    a_run(tmp_path, a_ulid(1), [])
    text = text_of(tmp_path, a_ulid(1))
    assert "no data" in text
    assert "INVALID" in text and "no request arrived" in text


def test_names_are_not_markup(tmp_path: Path) -> None:
    """Brackets in a name are shown, not interpreted."""
    a_run(tmp_path, a_ulid(1), name="rate[red]=12[/red] :smile:")
    assert "rate[red]=12[/red] :smile:" in text_of(tmp_path, a_ulid(1))


def test_the_summary_of_a_pool_that_changes(tmp_path: Path) -> None:
    """Transitions with their stages and a line on copies; neither where there was none."""
    a_run(tmp_path, a_ulid(1), a_changing_history())
    text = text_of(tmp_path, a_ulid(1))
    (row,) = [line for line in text.splitlines() if "merge" in line]
    assert " ".join(row.split()) == "20.000 s merge 2x1 + 3x1 -> 2x2 4.000 s 2.000 s 1.000 s committed"
    assert "copies between workers: 1; 2 blocks, 2.0 MiB, 2.000 s on the wire" in text
    a_run(tmp_path, a_ulid(2), a_history(2))
    assert not {"Transitions", "copies"} & set(text_of(tmp_path, a_ulid(2)).split())


def test_many_transitions_do_not_flood_the_summary(tmp_path: Path) -> None:
    """The summary says how many there were and lists the last ten."""
    told = []
    for number in range(6):
        at = 10 * number * SECOND
        told += [*a_merge(at, 2 * number + 1), *a_split(at + 6 * SECOND, 2 * number + 2)]
    a_run(tmp_path, a_ulid(1), told)
    text = text_of(tmp_path, a_ulid(1))
    assert "Transitions (12), the last 10" in text
    assert text.count("committed") == 10
    assert "0.0 ms" in text


def test_the_json_report_of_a_pool_that_changes(tmp_path: Path) -> None:
    """Each transition, and the copies in total."""
    a_run(tmp_path, a_ulid(1), a_changing_history())
    found = report_json(load_report(tmp_path, a_ulid(1)))
    (moved,) = found["reconfigs"]
    assert (moved["move"], moved["by"], moved["switch_s"]) == ("merge 2x1 + 3x1 -> 2x2", "ann", 1.0)
    assert found["cache_ops"] == {
        "copies": 1,
        "finished": 1,
        "failed": 0,
        "blocks": 2,
        "payload_bytes": 2 * 2**20,
        "wire_s": 2.0,
        "wait_mean_s": 3.0,
        "wait_max_s": 3.0,
    }


def test_the_timeline_has_each_window_and_each_transition_once(tmp_path: Path) -> None:
    """A transition stands in the window in which it began, or for itself outside all windows."""
    life = a_life(replace(a_request(), arrival_ns=10 * SECOND))
    moves = [a_merge(10 * SECOND), a_split(16 * SECOND), a_merge(30 * SECOND, 3)]
    told = told_in_order([a_window(0), life, a_window(1, "merge", capacity_ns=0), *moves])
    a_run(tmp_path, a_ulid(1), told)
    first, second, lone = answer_report(tmp_path, "reconfig_timeline", a_ulid(1)).dicts()
    merge = "merge 2x1 + 3x1 -> 2x2"
    assert (first["composition"], first["utilisation"], first["transitions"]) == (
        "2 x CP1 + 1 x CP2",
        0.6,
        None,
    )
    assert (second["index"], second["transitions"], second["drain_s"], second["switch_s"]) == (
        1,
        f"{merge}; split 2x2 -> 2x1 + 3x1",
        4.0,
        2.0,
    )
    assert (second["ttft_mean_s"], second["utilisation"], second["action"]) == (3.5, None, "merge")
    assert (lone["index"], lone["start_s"], lone["transitions"]) == (None, 30.0, merge)


def test_a_worker_that_comes_back_counts_once(tmp_path: Path) -> None:
    """Its lives add up, and busy is a share of the time that it was there."""
    lives = [a_life(a_request(n, arrival_ns=n * 12 * SECOND), WORKERS[1]) for n in range(2)]
    told = told_in_order([lives[0], a_merge(4 * SECOND), a_split(10 * SECOND), lives[1]])
    a_run(tmp_path, a_ulid(1), told)
    rows = {row["worker_id"]: row for row in load_report(tmp_path, a_ulid(1)).workers}
    row = rows["2x1"]
    assert (row["requests"], row["busy_s"]) == (2, 4.0)
    assert (row["there_s"], row["busy_share"]) == (8.0 + 8.5, pytest.approx(4.0 / 16.5))
    assert rows["2x2"]["there_s"] == 2.0


def test_one_token_answers_leave_the_report_whole(tmp_path: Path) -> None:
    """Without any TPOT the TTFT is still reported."""
    a_run(tmp_path, a_ulid(1), a_life(replace(a_request(), output_tokens=1)))
    found = report_json(load_report(tmp_path, a_ulid(1)))
    assert found["tpot_mean_s"] is None
    assert found["ttft_s"]["mean"] == 3.5


@pytest.mark.parametrize("name", report_names())
def test_every_report_as_text_csv_json_and_parquet(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], name: str
) -> None:
    """Data and nothing else goes to stdout, in each form."""
    a_run(tmp_path, a_ulid(1), a_changing_history())
    rows = len(answer_report(tmp_path, name, a_ulid(1)).rows)
    commands.report(tmp_path, name, "latest", "text")
    assert capfdbinary.readouterr().out
    commands.report(tmp_path, name, "latest", "csv")
    assert len(capfdbinary.readouterr().out.splitlines()) == rows + 1
    commands.report(tmp_path, name, "latest", "json")
    shown = json.loads(capfdbinary.readouterr().out)
    assert isinstance(shown, dict) if name == "summary" else len(shown) == rows
    commands.report(tmp_path, name, "latest", "parquet")
    captured = capfdbinary.readouterr()
    assert pq.read_table(pa.BufferReader(captured.out)).num_rows == rows
    assert captured.err == b""


def test_a_report_explains_its_columns_to_people_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below the table stands what its statement begins with; CSV is the table, and nothing says nothing."""
    run = a_run(tmp_path, a_ulid(0))
    commands.report(tmp_path, "worker_load", run.run_id)
    told = " ".join(capsys.readouterr().out.split())
    assert told.endswith("busy_share is of the time that the worker was there.")
    commands.report(tmp_path, "worker_load", run.run_id, "csv")
    commands.report(tmp_path, "reconfigs", run.run_id)
    captured = capsys.readouterr()
    assert "busy_share is of" not in captured.out and "drain_s is from" not in captured.out
    assert "no data" in captured.err


def test_unknown_reports_and_runs_are_named(tmp_path: Path) -> None:
    """What was asked, and what there is."""
    a_run(tmp_path, a_ulid(1))
    with pytest.raises(ConfigError, match="report sumary: no such report; there are: aiperf, cache_ops, "):
        commands.report(tmp_path, "sumary")
    with pytest.raises(ConfigError, match="run NONE: no such finished run"):
        commands.report(tmp_path, "summary", "NONE")


def test_the_report_of_a_killed_run_is_made_from_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Asked by its id, a killed run is rebuilt; a running one is refused; latest passes both over."""
    a_run(tmp_path, a_ulid(1))
    _, recorder = a_run_under_way(tmp_path, a_ulid(2), a_history(4)[:-3])
    recorder.flush()
    with pytest.raises(ConfigError, match="is still running"):
        commands.report(tmp_path, "summary", a_ulid(2))
    commands.report(tmp_path, "summary", "latest", "json")
    captured = capsys.readouterr()
    assert json.loads(captured.out)["run_id"] == a_ulid(1)
    assert f"{a_ulid(2)} began after it" in captured.err
    recorder._log.close()
    commands.report(tmp_path, "summary", a_ulid(2), "json")
    captured = capsys.readouterr()
    assert json.loads(captured.out)["status"] == "interrupted"
    assert "rebuilding its tables" in captured.err


def test_sql_and_runs_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Answers go to stdout in the form asked for; that there is nothing goes to stderr."""
    commands.runs(tmp_path)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "no data\n")
    a_run(tmp_path, a_ulid(1), a_history(3))
    commands.runs(tmp_path, "json")
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["run_id"], listed["status"], listed["verdict"]) == (a_ulid(1), "finished", "VALID")
    commands.runs(tmp_path)
    assert a_ulid(1) in capsys.readouterr().out
    commands.sql(tmp_path, "SELECT request_id, tpot_s FROM requests ORDER BY 1", "csv")
    assert capsys.readouterr().out == "request_id,tpot_s\n0,\n1,3.0\n2,1.5\n"
    commands.sql(tmp_path, "SELECT NULL AS x, now() AS t", "json")
    assert json.loads(capsys.readouterr().out)[0]["x"] is None
    commands.sql(tmp_path, "FROM runs")
    assert "config_hash" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="--parquet"):
        commands.runs(tmp_path, "parquet")
