"""Sweeps of real processes: their runs, what is done before, what an interrupt leaves."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vertumnus.cli import main
from vertumnus.commandline.exit_codes import INTERRUPTED, OK
from vertumnus.records.run_dir import list_runs
from vertumnus.report.store import query

SIM = ("+experiment=tool_agent", "backend=sim", "workload.requests=60")


def rows(text: str) -> list[list[str]]:
    """Return the lines of a closing table in words."""
    return [line.split() for line in text.splitlines()]


def test_a_sweep_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two jobs run in processes; with a third, two are done before; by its id a sweep has nothing left."""
    monkeypatch.chdir(tmp_path)
    assert main([*SIM, "-m", "seed=0,1"]) == OK
    first = rows(capsys.readouterr().out)
    assert [row[1:4] for row in first[1:]] == [
        ["seed=0", "finished", "VALID"],
        ["seed=1", "finished", "VALID"],
    ]
    assert main([*SIM, "--jobs", "1", "-m", "seed=0,1,2"]) == OK
    out, err = capsys.readouterr()
    assert [row[-1] for row in rows(out)[1:3]] == [row[-1] for row in first[1:]]
    assert "3 jobs, 2 of them done before" in err
    ids = query(Path("runs"), "SELECT sweep, run_id, overrides FROM runs ORDER BY run_id").rows
    assert len(ids) == 3 and len({sweep for sweep, *_ in ids}) == 2
    assert ids[2][2] == [*SIM, "seed=2"]
    assert main(["--resume", ids[2][0]]) == OK
    assert main([*SIM, "-m", "seed=0"]) == OK
    assert len(list_runs(Path("runs"))) == 3
    assert main([*SIM, "--again", "-m", "seed=0"]) == OK
    assert len(list_runs(Path("runs"))) == 4


def test_ctrl_c_closes_the_runs_and_the_table(tmp_path: Path) -> None:
    """The run under way is kept as interrupted, the other has not started; exit 130, nobody is left."""
    words = ("+experiment=tool_agent", "backend=sim", "--jobs", "1", "-m", "seed=0,1")
    command = [sys.executable, "-m", "vertumnus", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as sweep:
        _wait_for_a_log(tmp_path / "runs")
        sweep.send_signal(signal.SIGINT)
        out, _ = sweep.communicate(timeout=60)
    assert sweep.returncode == INTERRUPTED
    assert [row[2] for row in rows(out)[1:]] == ["interrupted", "not"]
    assert [each.status for each in list_runs(tmp_path / "runs")] == ["interrupted"]


def _wait_for_a_log(runs_dir: Path) -> None:
    deadline = time.monotonic() + 60
    while not list(runs_dir.glob("*/facts.log")) and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.fixture
def a_trace(tmp_path: Path) -> Path:
    """A trace file of three requests."""
    lines = [
        f'{{"timestamp": {1000 * n}, "input_length": 600, "output_length": 2, "hash_ids": [{n}, {n + 9}]}}'
        for n in range(3)
    ]
    file = tmp_path / "trace.jsonl"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_a_run_on_an_older_trace_file_does_not_count(
    tmp_path: Path, a_trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file was written after the run: the same words run again."""
    monkeypatch.chdir(tmp_path)
    words = ["+experiment=conversation", "backend=sim", f"workload.path={a_trace}", "arrival=trace"]
    assert main([*words, "-m", "seed=0"]) == OK
    assert main([*words, "-m", "seed=0"]) == OK
    assert len(list_runs(Path("runs"))) == 1
    later = time.time() + 5

    os.utime(a_trace, (later, later))
    assert main([*words, "-m", "seed=0"]) == OK
    assert len(list_runs(Path("runs"))) == 2
