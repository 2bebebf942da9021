"""A disk that is full costs a run its end, not what was recorded, and says so in one line."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from vertumnus.cli import main
from vertumnus.commandline.exit_codes import FAILED, OK
from vertumnus.records import recorder, tables
from vertumnus.records.run_dir import RunDir, list_runs
from vertumnus.report import store

FULL = OSError(errno.ENOSPC, "No space left on device")
WORDS = ("+experiment=tool_agent", "backend=sim", "workload.requests=60")


def fail(*_given: object, **_named: object) -> None:
    raise FULL


def full_after(writes: int) -> Callable[[int, bytes], int]:
    """os.write that has room for *writes* of them."""
    really_write, left = os.write, iter(range(writes))

    def write(descriptor: int, payload: bytes) -> int:
        if next(left, None) is None:
            raise FULL
        return really_write(descriptor, payload)

    return write


def run_on_a_full_disk(runs_dir: Path, capsys: pytest.CaptureFixture[str]) -> tuple[RunDir, str]:
    """Run until the disk is full; return the run's folder and the one line of error."""
    assert main([*WORDS, f"runs_dir={runs_dir}"]) == FAILED
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    (listed,) = list_runs(runs_dir)
    run = listed.run
    assert listed.status == "unfinished" and len(errors) == 1
    hint = f"when there is room, vertumnus salvage {run.run_id} --runs-dir {runs_dir} makes its tables"
    assert errors[0].endswith(f"; the run has stopped and what was recorded is kept: {hint}")
    return run, errors[0]


def salvaged_requests(run: RunDir) -> int:
    assert main(["salvage", run.run_id, "--runs-dir", str(run.path.parent)]) == OK
    return pq.read_table(run.table("requests")).num_rows


def test_a_log_that_finds_no_room(tmp_path, monkeypatch, capsys) -> None:
    """The run stops at its first batch, which the log has not; the message is the log's, once."""
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full_after(1))
        run, error = run_on_a_full_disk(tmp_path, capsys)
    assert error.startswith(f"error: {run.log}: cannot append: No space left on device; the log is intact")
    assert salvaged_requests(run) == 0


def test_tables_that_find_no_room(tmp_path, monkeypatch, capsys) -> None:
    """The table is named, the log is whole: salvage on a full disk says so, and later makes them all."""
    with monkeypatch.context() as patched:
        patched.setattr(tables.pq, "write_table", fail)
        run, error = run_on_a_full_disk(tmp_path, capsys)
        table = run.table("requests")
        assert error.startswith(f"error: {table}: No space left on device; the run has stopped and")
        assert main(["salvage", "--runs-dir", str(tmp_path)]) == FAILED
        kept = "its log keeps what was recorded; salvage it when there is room"
        assert capsys.readouterr().err == f"error: {table}: No space left on device; {kept}\n"
    assert salvaged_requests(run) == 60


def test_a_failure_before_the_end_is_told_with_it(tmp_path, monkeypatch, capsys) -> None:
    """What the run failed of is not lost with its end."""
    monkeypatch.setattr(tables.pq, "write_table", fail)
    monkeypatch.setattr(recorder.RunFolds, "apply", lambda folds, batch: 1 // 0)
    assert main([*WORDS, f"runs_dir={tmp_path}"]) == FAILED
    error = capsys.readouterr().err.splitlines()[-1]
    assert "; the run has stopped (ZeroDivisionError: integer division or modulo by zero) and what" in error


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (FULL, "No space left on device"),
        (duckdb.IOException("At the end. Original error: not\nwritten"), "not written"),
    ],
)
def test_a_catalog_that_finds_no_room(tmp_path, monkeypatch, capsys, error, why) -> None:
    """The run is whole and its summary shown; the catalog is named, and the exit code is 1."""

    def no_room(*_given: object) -> None:
        raise error

    monkeypatch.setattr(store, "_write_catalog", no_room)
    assert main([*WORDS, f"runs_dir={tmp_path}"]) == FAILED
    out, err = capsys.readouterr()
    catalog = tmp_path / store.CATALOG
    said = f"{catalog}: cannot be written: {why}; the runs are whole, and the next one to end writes it"
    assert err.splitlines()[-1] == f"error: {said}" and "VALID" in out
    (listed,) = list_runs(tmp_path)
    assert (listed.status, listed.verdict) == ("finished", "VALID") and not catalog.exists()
