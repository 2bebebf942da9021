"""A run whose clients give up, as a user sees it: from the key to every output, audited and run again."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from tests.run.test_explain import BUSY
from tests.run.test_simulated import a_config
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import OK
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.records.run_dir import find_run
from vertumnus.run.asked import Asked
from vertumnus.run.audit import audit_run
from vertumnus.run.execute import execute
from vertumnus.run.plan import plan

PATIENCE = "arrival.patience_s=2"
REASON = "by client, 2.000 s after its arrival"


@pytest.fixture(scope="module")
def runs_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Overload, at which some wait longer than 2 s."""
    runs_dir = tmp_path_factory.mktemp("runs")
    words = (*BUSY, PATIENCE)
    outcome = execute(a_config(runs_dir, *words), Asked(words), Console(file=StringIO()))
    assert (outcome.status, outcome.verdict) == ("finished", "VALID")
    return runs_dir


@pytest.fixture(scope="module")
def given_up(runs_dir: Path) -> list[dict[str, Any]]:
    """The rows of those who gave up."""
    rows = pq.read_table(find_run(runs_dir).run.table("requests")).to_pylist()
    assert len(rows) == 400
    assert all(row["ttft_s"] <= 2.0 for row in rows if row["status"] == "finished")
    return [row for row in rows if row["status"] != "finished"]


def told(words: list[str], runs_dir: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*words, "--runs-dir", str(runs_dir)]) == OK
    return capsys.readouterr().out


def test_they_end_when_their_patience_does_or_with_their_step(given_up: list[dict[str, Any]]) -> None:
    """Cancelled by their clients and missed; those in a step hold it until it is over."""
    assert {(row["status"], row["reason"], row["slo_met"]) for row in given_up} == {
        ("cancelled", REASON, False)
    }
    queued = [row for row in given_up if row["prefill_s"] is None]
    running = [row for row in given_up if row["prefill_s"] is not None]
    assert queued and {row["e2e_s"] for row in queued} == {2.0}
    assert running and all(row["e2e_s"] >= 2.0 for row in running)
    assert all(row["ttft_s"] is None for row in given_up)


def test_the_run_is_clean_and_comes_again(runs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both replays agree, the books balance, and the same config gives the same log."""
    assert audit_run(find_run(runs_dir).run).is_clean
    assert "IDENTICAL" in told(["rerun"], runs_dir, capsys)


def test_the_summary_counts_them(
    runs_dir: Path, given_up: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """What was asked for, how many left, and the attainment over all."""
    text = told(["report"], runs_dir, capsys)
    assert "given up after 2 s without a first token" in text
    assert f"400 requests: {400 - len(given_up)} finished, {len(given_up)} cancelled" in text
    numbers = json.loads(told(["report", "--json"], runs_dir, capsys))
    numbers = numbers[0] if isinstance(numbers, list) else numbers
    assert (numbers["patience_s"], numbers["slo_attainment"] < 1.0) == (2.0, True)


def test_explain_says_who_ended_it(
    runs_dir: Path, given_up: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """For one that left the queue, and one whose step went on without it."""
    for is_begun in (False, True):
        row = next(row for row in given_up if (row["prefill_s"] is not None) == is_begun)
        text = told(["explain", "latest", str(row["request_id"])], runs_dir, capsys)
        assert f"cancelled: {REASON}" in text
        assert (f"outcome   cancelled: {REASON}" in text) == (not is_begun)


def test_a_trace_marks_the_steps_that_were_for_nothing(
    runs_dir: Path, given_up: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each prefill of a request that was given up says so, and no other does."""
    told(["report", "--perfetto", str(tmp_path / "t.json")], runs_dir, capsys)
    events = json.loads((tmp_path / "t.json").read_bytes())["traceEvents"]
    marked = [each for event in events for each in event.get("args", {}).get("cancelled", ())]
    assert sorted(marked) == [row["request_id"] for row in given_up if row["prefill_s"] is not None]


def test_a_preview_counts_on_them(runs_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No TTFT is longer than the patience, and it says why."""
    words = ["preview", "split", "0x4", "--at", "3", "--run", "latest"]
    assert "clients give up after 2 s, which then counts as their TTFT" in told(words, runs_dir, capsys)
    numbers = json.loads(told([*words, "--json"], runs_dir, capsys))
    assert numbers["patience_s"] == 2.0
    assert numbers["stay"]["ttft_p90_s"] <= 2.0 and numbers["stay"]["served"] < numbers["stay"]["requests"]


def test_a_plan_says_that_clients_give_up(tmp_path: Path) -> None:
    """Beside the arrivals, before anything runs."""
    assert "given up after 2 s without a first token" in plan(a_config(tmp_path, *BUSY, PATIENCE))


def test_forecasts_are_held_against_the_waits_that_came(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Predicted or observed, who gives up counts with 1.5 s; nobody is left out."""
    words = ("+experiment=reconfigure", "workload.requests=300", "arrival.patience_s=1.5")
    when = ("controller=what_if", "controller.window_s=4", "controller.replay_s=10", "controller.horizon_s=8")
    with hydra_configs():
        config = to_run_config(plain_tree(composed((*words, *when, f"runs_dir={tmp_path}"))))
    execute(config, Asked(words), Console(file=StringIO()))
    capsys.readouterr()
    forecasts = json.loads(told(["report", "forecasts", "--json"], tmp_path, capsys))
    requests = pq.read_table(find_run(tmp_path).run.table("requests")).to_pylist()
    waits = [(row["arrival_s"], row["ttft_s"] or 1.5) for row in requests]
    assert any(row["ttft_s"] is None for row in requests)
    judged = [row for row in forecasts if row["observed_ttft_s"] is not None]
    assert judged
    for row in judged:
        until_s = row["t_s"] + row["span_s"] * row["repeats"]
        mine = [wait for arrival, wait in waits if arrival <= until_s and arrival + wait > row["t_s"]]
        assert row["observed_requests"] == len(mine)
        assert row["observed_ttft_s"] == pytest.approx(sum(mine) / len(mine))
        assert row["stay_ttft_s"] <= 1.5 and row["move_ttft_s"] <= 1.5
