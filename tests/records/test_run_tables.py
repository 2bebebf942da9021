"""Tables have fixed schemas, appear whole or not at all, and equal runs give equal bytes."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import fields

from tests.support.recorded import (
    BALANCED,
    WORKERS,
    a_changing_history,
    a_history,
    a_run,
    a_run_under_way,
    a_ulid,
)
from vertumnus.records import tables
from vertumnus.records.columns import TABLES, TABLES_VERSION
from vertumnus.records.decisions import CandidateRow
from vertumnus.records.metrics import Metrics
from vertumnus.records.run_dir import RunDir

SAME = ("facts.log", *(f"{name}.parquet" for name in TABLES if name != "runs"))

ONE_RUN = """
import sys
from pathlib import Path
from tests.support.recorded import a_changing_history, a_run
a_run(Path(sys.argv[1]), sys.argv[2], a_changing_history())
"""


def test_schemas_and_versions(tmp_path: Path) -> None:
    """Every table has exactly its columns and types, and says its schema version."""
    run = a_run(tmp_path, a_ulid(0))
    for name in TABLES:
        written = pq.read_schema(run.table(name))
        assert written.equals(tables.schema(name))
        assert written.metadata[b"schema_version"] == b"%d" % TABLES_VERSION
        assert written.field("schema_version").type == pa.int32()


def test_the_runs_table_holds_every_metric() -> None:
    """No metric is forgotten on the way to the table."""
    names = {column.name for column in TABLES["runs"]}
    assert {field.name for field in fields(Metrics)} - {"buckets"} <= names


def test_seconds_and_nulls(tmp_path: Path) -> None:
    """Durations are seconds, undefined is NULL, the worker is <first>x<degree>."""
    run = a_run(tmp_path, a_ulid(0))
    row = pq.read_table(run.table("requests")).to_pylist()[4]
    parts = [row[name] for name in ("queue_s", "cache_wait_s", "prefill_s", "ext_s", "ttft_s")]
    assert parts == [0.0, 0.0, 2.0, 0.5, 2.5]
    assert (row["arrival_s"], row["t_ns"]) == (4.0, 9_500_000_000)
    assert (row["tpot_s"], row["send_lag_s"]) == (None, None)
    assert (row["worker_id"], row["cp_degree"], row["measured"], row["length_bucket"]) == (
        "2x1",
        1,
        True,
        "64-256",
    )
    (whole,) = pq.read_table(run.table("runs")).to_pylist()
    assert (whole["execution"], whole["sim_requests_per_s"], whole["reasons"]) == ("simulated", 24.0, [])


@pytest.mark.parametrize(
    ("typed", "label"),
    [
        (("+experiment=x", "backend=sim", "policy=paper_tuned", "seed=3"), "backend=sim policy=paper_tuned"),
        (("+experiment=x", "seed=3", "runs_dir=elsewhere"), None),
        (("++policy.beta=2", "~slo"), "policy.beta=2 ~slo"),
    ],
)
def test_a_run_is_labelled_by_what_was_typed(
    tmp_path: Path, typed: tuple[str, ...], label: str | None
) -> None:
    """As a comparison names its group: without what only repeats a run or says where it lies."""
    run = a_run(tmp_path, a_ulid(0), overrides=typed)
    assert pq.read_table(run.table("runs")).to_pylist()[0]["label"] == label


def test_a_pool_that_changes_fills_its_tables(tmp_path: Path) -> None:
    """Windows, transitions and copies are rows, in seconds, with NULL where there is nothing to say."""
    run = a_run(tmp_path, a_ulid(0), a_changing_history())
    windows, (reconfig,), (copy,) = (
        pq.read_table(run.table(name)).drop_columns("schema_version").to_pylist()
        for name in ("windows", "reconfigs", "cache_ops")
    )
    assert windows[0] == {
        "index": 0,
        "t_ns": 10_000_000_000,
        "start_s": 0.0,
        "end_s": 10.0,
        "requests": 25,
        "requests_per_s": 2.5,
        "demand_s": 12.0,
        "capacity_s": 20.0,
        "utilisation": 0.6,
        "long_fraction": 0.2,
        "signal": "merge",
        "persistence": 2,
        "action": None,
        "reason": "why",
        "forecast_id": None,
        "composition": "2 x CP1 + 1 x CP2",
    }
    assert reconfig == {
        "epoch": 1,
        "t_ns": 20_000_000_000,
        "kind": "merge",
        "sources": "2x1 + 3x1",
        "targets": "2x2",
        "by": "ann",
        "outcome": "committed",
        "reason": None,
        "drain_s": 4.0,
        "park_s": 2.0,
        "switch_s": 1.0,
        "total_s": 5.0,
        "redirected_requests": 1,
        "evicted_blocks": 3,
    }
    assert copy == {
        "transfer_id": 1,
        "t_ns": 0,
        "purpose": "reconcile",
        "origin": "reconcile",
        "worker_id": "2x1",
        "cp_degree": 1,
        "for_request": 5,
        "outcome": "finished",
        "reason": None,
        "blocks": 2,
        "payload_bytes": 2 * 2**20,
        "wire_s": 2.0,
        "wait_s": 3.0,
    }


def test_a_pool_that_stays_leaves_those_tables_empty(tmp_path: Path) -> None:
    """Without windows, transitions and copies the tables are there, with no row."""
    run = a_run(tmp_path, a_ulid(0))
    for name in ("windows", "reconfigs", "cache_ops"):
        assert pq.read_table(run.table(name)).num_rows == 0


def test_candidates_are_rows(tmp_path: Path) -> None:
    """A sampled placement leaves a row for each candidate, the excluded ones with their reason."""
    run, recorder = a_run_under_way(tmp_path, a_ulid(0))
    offer = CandidateRow(
        3, 0, 9, WORKERS[0], 16, 10**9, 2 * 10**9, 0, 5, 1, 0, None, 2, 3 * 10**9, "ns", True, None
    )
    recorder.keep([offer, offer._replace(worker=WORKERS[1], cost=70, cost_unit="tokens", chosen=False)])
    nothing = dict.fromkeys(
        ("cached_tokens", "queue_ns", "service_ns", "gpu_time_ns", "externality_ns", "pending_blocks")
    )
    left_out = offer._replace(**nothing, pulled_blocks=None, after_request=None, cost=None)
    recorder.keep([left_out._replace(worker=WORKERS[2], chosen=False, excluded_reason="draining")])
    recorder.finish("finished", BALANCED, wall_s=1.0)
    chosen, counted, excluded = pq.read_table(run.table("decisions")).to_pylist()
    assert (chosen["worker_id"], chosen["queue_s"], chosen["cost_s"], chosen["chosen"]) == (
        "0x2",
        1.0,
        3.0,
        True,
    )
    assert [chosen[name] for name in ("externality_s", "pending_blocks", "pulled_blocks")] == [5e-9, 1, 0]
    assert (counted["cost_s"], counted["cost"], counted["cost_unit"]) == (None, 70, "tokens")
    assert (excluded["cost_s"], excluded["excluded_reason"]) == (None, "draining")


def test_equal_runs_give_equal_bytes_in_any_process(tmp_path: Path) -> None:
    """Two processes with different hash seeds leave the same log and the same tables."""
    for number in range(2):
        environment = {**os.environ, "PYTHONHASHSEED": str(number)}
        command = [sys.executable, "-c", ONE_RUN, str(tmp_path), a_ulid(number)]
        subprocess.run(command, check=True, env=environment, cwd=Path(__file__).parents[2], timeout=300)
    first, second = (RunDir(tmp_path / a_ulid(number)) for number in range(2))
    for name in SAME:
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes(), name


def test_flushing_leaves_simulated_logs_equal(tmp_path: Path) -> None:
    """When somebody asks for a flush is a matter of wall time, and no trace of it stays."""
    for number, flush_after in enumerate((1, 60)):
        _, recorder = a_run_under_way(tmp_path, a_ulid(number), [])
        for place, record in enumerate(a_history(12)):
            recorder.record(*record)
            if place % flush_after == 0:
                recorder.flush()
        recorder.finish("finished", BALANCED, wall_s=1.0)
    first, second = (RunDir(tmp_path / a_ulid(number)) for number in range(2))
    assert first.log.read_bytes() == second.log.read_bytes()


@pytest.mark.parametrize("fatal", ["fsync", "replace"])
def test_a_crash_while_writing_leaves_no_partial_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: str
) -> None:
    """Before the rename nothing has the table's name, and nothing hidden stays behind."""

    def crash(*arguments: object) -> None:
        raise OSError("power cut")

    monkeypatch.setattr(os, fatal, crash)
    with pytest.raises(OSError, match="power cut"):
        tables.write_table(tmp_path / "faults.parquet", "faults", [])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fatal", [*(f"{name}.parquet" for name in TABLES), "_SUCCESS.json"])
def test_a_run_that_dies_at_its_end_has_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fatal: str
) -> None:
    """Whichever file the end stops at, the run counts as unfinished and the others are whole."""
    run, recorder = a_run_under_way(tmp_path, a_ulid(0))
    really_replace = os.replace

    def crash_at(source: Path, target: Path) -> None:
        if Path(target).name == fatal:
            raise OSError("power cut")
        really_replace(source, target)

    monkeypatch.setattr(os, "replace", crash_at)
    with pytest.raises(OSError, match="power cut"):
        recorder.finish("finished", BALANCED, wall_s=1.0)
    assert run.end() is None
    for path in run.path.glob("*.parquet"):
        pq.read_table(path)


def test_failed_rewrite_keeps_the_old_file(tmp_path: Path) -> None:
    """A table is replaced as a whole or stays as it was."""
    path = tmp_path / "faults.parquet"
    tables.write_table(path, "faults", [])
    before = path.read_bytes()
    with pytest.raises(AttributeError):
        tables.write_table(path, "faults", a_history(1))
    assert path.read_bytes() == before
