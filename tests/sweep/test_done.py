"""Which jobs need not run: a simulated one with a VALID run, an executed one with one of its own sweep."""

import os
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from vertumnus.report.store import Answer
from vertumnus.sweep import done
from vertumnus.sweep.done import ValidRuns
from vertumnus.sweep.job import Job

COLUMNS = ("run_id", "asked_hash", "code_hash", "sweep", "started_at", "execution")


def a_job(config: str, **changes: Any) -> Job:
    """A simulated job, unless changed."""
    job = {"config_hash": config, "code_hash": "code", "is_live": False, "traces": []}
    return cast(Job, SimpleNamespace(**job | changes))


@pytest.fixture
def valid(monkeypatch: pytest.MonkeyPatch) -> ValidRuns:
    """Runs of a full sweep, of a part of it, and one by itself."""
    runs = [("1", "a", "part"), ("2", "b", "full"), ("3", "a", "other"), ("4", "c", None)]
    rows = [(run, config, "code", sweep, datetime(2026, 1, 1), "") for run, config, sweep in runs]
    monkeypatch.setattr(done, "query", lambda *_: Answer(COLUMNS, rows))
    return ValidRuns(Path("runs"))


def test_a_simulated_run_counts_in_every_sweep(valid: ValidRuns) -> None:
    """What --only ran is not run again by the whole sweep; it would come out the same."""
    jobs = {1: a_job("a"), 2: a_job("b"), 3: a_job("c"), 4: a_job("d"), 5: a_job("b", code_hash="other")}
    found = {number: ending.run_id for number, ending in valid.endings("full", jobs).items()}
    assert found == {1: "3", 2: "2", 3: "4"}
    assert valid.elsewhere("full", jobs.values()) == (0, [])


def test_a_run_does_not_count_once_its_trace_has_changed_or_gone(valid: ValidRuns, tmp_path: Path) -> None:
    """The run began in 2026; a trace that is not there is told by the check of the job, not here."""
    trace = tmp_path / "trace.jsonl"
    jobs = {1: a_job("b", traces=[str(trace)])}
    assert valid.endings("full", jobs) == {}
    trace.touch()
    os.utime(trace, (0, 0))
    assert [ending.run_id for ending in valid.endings("full", jobs).values()] == ["2"]
    os.utime(trace, (2e9, 2e9))
    assert valid.endings("full", jobs) == {}


def test_an_executed_run_counts_in_its_own_sweep_and_others_are_told(valid: ValidRuns) -> None:
    """One has runs in two other sweeps, one in this, one was by itself, one has none."""
    jobs = {number: a_job(config, is_live=True) for number, config in enumerate("abcd", 1)}
    assert {number: ending.run_id for number, ending in valid.endings("full", jobs).items()} == {2: "2"}
    assert valid.elsewhere("full", jobs.values()) == (1, ["other", "part"])
