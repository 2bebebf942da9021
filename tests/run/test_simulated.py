"""A simulated run from the command line's words to its tables."""

import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from vertumnus.cli import main
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.errors import ConfigError
from vertumnus.records.run_dir import find_run, list_runs
from vertumnus.run.asked import Asked
from vertumnus.run.audit import audit_run
from vertumnus.run.execute import execute
from vertumnus.run.plan import plan

SMALL = ("+experiment=tool_agent", "backend=sim", "workload.requests=400")


def a_config(runs_dir: Path, *words: str) -> RunConfig:
    """The config of a short simulated run."""
    with hydra_configs():
        return to_run_config(plain_tree(composed((*SMALL, f"runs_dir={runs_dir}", *words))))


def run(runs_dir: Path, *words: str) -> Path:
    """Run it and return its folder."""
    outcome = execute(a_config(runs_dir, *words), Asked(words), Console(file=StringIO()))
    assert (outcome.status, outcome.verdict) == ("finished", "VALID")
    return runs_dir / outcome.run_id


def test_same_seed_gives_the_same_bytes(tmp_path) -> None:
    """Log and tables of two runs are byte-identical, the runs row aside; another seed differs."""
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    for name in ("facts.log", "requests.parquet", "workers.parquet", "decisions.parquet", "faults.parquet"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    assert (first / "requests.parquet").read_bytes() != (
        run(tmp_path / "c", "seed=1") / "requests.parquet"
    ).read_bytes()


@pytest.mark.parametrize(
    "policy",
    [
        ("policy=paper", "policy.queue_estimate=remaining"),
        ("policy=homo", "cluster.composition={4: 10, 2: 0}"),
        ("policy=static", "policy.length_threshold=8192"),
        ("policy=least_loaded",),
        ("policy=round_robin", "cluster.step_tokens=16384"),
    ],
)
def test_every_policy_runs_and_replays(tmp_path, policy) -> None:
    """Each policy serves all requests, and both replays of its log are exact."""
    folder = run(tmp_path, *policy)
    table = pq.read_table(folder / "requests.parquet")
    assert set(table["status"].to_pylist()) == {"finished"} and table.num_rows == 400
    audit = audit_run(find_run(tmp_path).run)
    assert audit.is_clean and audit.records > 400 * 10


def test_admission_turns_requests_away_and_replays(tmp_path) -> None:
    """Far above saturation some are rejected with the reason, and count as missed; both replays are exact."""
    folder = run(tmp_path, "admission=on", "policy=paper", "arrival.rate=300")
    rows = pq.read_table(folder / "requests.parquet").to_pylist()
    rejected = [row for row in rows if row["status"] == "rejected"]
    assert 20 < len(rejected) < 400 and not any(row["slo_met"] for row in rejected)
    assert all(row["reason"].startswith("admission: predicted TTFT") for row in rejected)
    measured = rows[60:]  # after a warm-up of 15 %
    met = sum(row["input_tokens"] for row in measured if row["slo_met"])
    (told,) = pq.read_table(folder / "runs.parquet", columns=["slo_attainment", "rejected"]).to_pylist()
    assert told["rejected"] == len(rejected)
    assert told["slo_attainment"] == pytest.approx(met / sum(row["input_tokens"] for row in measured))
    assert audit_run(find_run(tmp_path).run).is_clean


def test_time_to_first_token_is_the_sum_of_its_parts(tmp_path) -> None:
    """ttft = queue + cache wait + prefill + ext in every row, and cached never exceeds the oracle's."""
    rows = pq.read_table(run(tmp_path) / "requests.parquet").to_pylist()
    for row in rows:
        parts = row["queue_s"] + row["cache_wait_s"] + row["prefill_s"] + row["ext_s"]
        assert row["ttft_s"] == pytest.approx(parts, abs=1e-9)
        assert row["cached_tokens"] + row["uncached_tokens"] == row["input_tokens"]
        assert row["cached_tokens"] < row["input_tokens"]


def test_decisions_are_sampled_with_all_terms(tmp_path) -> None:
    """With decision_share=1 every request has one row a worker, one of them chosen, least in cost."""
    rows = pq.read_table(run(tmp_path, "records.decision_share=1.0") / "decisions.parquet").to_pylist()
    assert len(rows) == 400 * 12
    for request_id in range(400):
        mine = [row for row in rows if row["request_id"] == request_id]
        chosen = [row for row in mine if row["chosen"]]
        assert len(chosen) == 1
        assert chosen[0]["cost_s"] == min(row["cost_s"] for row in mine)


def test_prompt_longer_than_any_worker_is_refused_before_anything_is_written(tmp_path) -> None:
    """The message names the key, the request, what it needs and what would do."""
    with pytest.raises(
        ConfigError, match=r"cluster\.blocks_per_rank: found 8;.*largest worker .degree 4."
    ) as error:
        execute(a_config(tmp_path, "cluster.blocks_per_rank=8"), Asked(), Console(stderr=True))
    assert "must be at least" in str(error.value)
    assert list_runs(tmp_path) == []


def test_plan_tells_load_against_capacity(tmp_path) -> None:
    """The plan names requests, pool, rate and its share of the capacity, and writes nothing."""
    text = plan(a_config(tmp_path, "arrival.rate=20", "arrival.time_scale=null"))
    assert "400 with" in text and "20.00 req/s" in text and "% of" in text
    assert list_runs(tmp_path) == []


def test_interrupt_keeps_what_was_recorded(tmp_path) -> None:
    """Ctrl-C ends a run with status interrupted, whole tables, and exit code 130.

    Its last request comes so late that it surely has not ended.
    """
    arrivals_ms = [*range(0, 4_000, 10), 10**9]
    rows = (
        f'{{"timestamp": {at}, "input_length": 600, "output_length": 1, "hash_ids": [{at}, {at + 1}]}}\n'
        for at in arrivals_ms
    )
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(rows))
    paced = ("arrival=trace", "backend=sim", "backend.clock=paced", "backend.speed=1000")
    words = ["+experiment=conversation", f"workload.path={trace}", *paced, f"runs_dir={tmp_path}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "vertumnus", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not any(log.stat().st_size > 20_000 for log in tmp_path.glob("*/facts.log")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, _err = process.communicate(timeout=300)
    assert process.returncode == 130
    listing = find_run(tmp_path)
    assert listing.status == "interrupted" and listing.verdict == "INVALID"
    assert "interrupted" in out
    assert 0 < pq.read_table(listing.run.table("requests")).num_rows < len(arrivals_ms)


def test_interrupt_while_the_run_opens_leaves_a_closed_run(tmp_path) -> None:
    """A signal as soon as the log is there finds everything in place to close the run."""
    held = ("backend=sim", "backend.clock=paced", "backend.speed=1e-6")  # it never ends by itself
    words = ["+experiment=tool_agent", *held, f"runs_dir={tmp_path}", "workload.requests=2000"]
    process = subprocess.Popen(
        [sys.executable, "-m", "vertumnus", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not any(tmp_path.glob("*/facts.log")):
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130
    assert find_run(tmp_path).status == "interrupted"


def test_one_broken_log_keeps_no_other_run_from_its_tables(tmp_path, capsys) -> None:
    """salvage tells of a log that it cannot read, exits 2, and makes the tables of the others."""
    folder = run(tmp_path)
    (folder / "_SUCCESS.json").unlink()
    broken = tmp_path / "01AAAAAAAAAAAAAAAAAAAAAAAA"
    broken.mkdir()
    (broken / "_STARTED.json").write_bytes((folder / "_STARTED.json").read_bytes())
    (broken / "facts.log").touch()
    assert main(["salvage", "--runs-dir", str(tmp_path)]) == 2
    assert "not a log of vertumnus" in capsys.readouterr().err
    assert find_run(tmp_path, folder.name).status == "interrupted"


def test_a_number_beyond_all_tables_is_refused(tmp_path) -> None:
    """The message names the key, and nothing is written."""
    with pytest.raises(ConfigError, match=r"seed: found 9+, must be within"):
        a_config(tmp_path, f"seed={'9' * 20}")
    assert list_runs(tmp_path) == []


def test_a_pace_changes_no_event(tmp_path: Path) -> None:
    """A paced run leaves the tables of the same run as fast as it can, whatever its speed."""
    fast, paced = run(tmp_path / "a"), run(tmp_path / "b", "backend.clock=paced", "backend.speed=1e6")
    for name in ("requests.parquet", "workers.parquet", "decisions.parquet", "faults.parquet"):
        assert (fast / name).read_bytes() == (paced / name).read_bytes(), name
    assert "paced at 20x" in plan(a_config(tmp_path, "backend.clock=paced", "backend.speed=20"))


@pytest.mark.parametrize(("words", "is_said"), [(("arrival.rate=4",), True), (("arrival=trace",), False)])
def test_another_pace_than_the_trace_s_own_is_said(tmp_path, words, is_said) -> None:
    """A file of one request a second that is offered faster; a generator's pace is nobody's own."""
    rows = (
        f'{{"timestamp": {n * 1000}, "input_length": 600, "output_length": 1, "hash_ids": [{n}, {n + 99}]}}\n'
        for n in range(20)
    )
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(rows))
    out = StringIO()
    config = a_config(tmp_path / "runs", "workload=conversation", f"workload.path={trace}", *words)
    execute(config, Asked(words), Console(file=out, width=200))
    told = "the trace's own rate is 1: arrival=trace keeps it"
    assert (told in out.getvalue()) is is_said
