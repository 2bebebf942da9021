"""Sweeps of real processes: their runs, what is done before, what an interrupt leaves."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vertumnus.cli import main
from vertumnus.commandline.exit_codes import FAILED, INTERRUPTED, OK
from vertumnus.records.run_dir import list_runs
from vertumnus.report.store import query


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stand in a folder with a trace of three requests; return the words of a run on it."""
    monkeypatch.chdir(tmp_path)
    lines = [
        f'{{"timestamp": {1000 * n}, "input_length": 600, "output_length": 2, "hash_ids": [{n}, {n + 9}]}}'
        for n in range(3)
    ]
    Path("trace.jsonl").write_text("\n".join(lines) + "\n")
    return ["+experiment=conversation", "backend=sim", "workload.path=trace.jsonl", "arrival=trace"]


def rows(text: str) -> list[list[str]]:
    """Return the lines of a closing table in words."""
    return [line.split() for line in text.splitlines()]


def test_a_sweep_goes_on_where_it_was(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """One job runs in a process; with a second, one is done before; by its id a sweep has nothing left.

    When the trace file has changed since, or when asked to, it runs again.
    """
    assert main([*words, "-m", "seed=0"]) == OK
    (first,) = rows(capsys.readouterr().out)[1:]
    assert first[len(words) + 2 : len(words) + 4] == ["finished", "VALID"]
    assert main([*words, "-m", "seed=0,1"]) == OK
    out, err = capsys.readouterr()
    assert rows(out)[1][1:5] == ["seed=0", "done", "before", "VALID"]
    assert rows(out)[1][-1] == first[-1] != rows(out)[2][-1]
    assert "2 jobs, 1 of them done before" in err
    found = query(Path("runs"), "SELECT sweep, overrides FROM runs ORDER BY run_id").rows
    assert len(found) == len({sweep for sweep, _ in found}) == 2
    assert found[1][1] == [*words, "seed=1"]
    assert main(["--resume", found[1][0]]) == OK
    assert len(list_runs(Path("runs"))) == 2
    later = time.time() + 5
    os.utime("trace.jsonl", (later, later))
    assert main([*words, "-m", "seed=0"]) == OK
    assert len(list_runs(Path("runs"))) == 3


def test_a_sweep_is_of_one_code(words: list[str], capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that starts after the code was edited is not run, and says why: it would not be the sweep's."""
    monkeypatch.setattr("vertumnus.sweep.job.code_hash", lambda is_live: "of an earlier code")
    assert main([*words, "-m", "seed=0"]) == FAILED
    assert "the code has changed since the sweep began" in capsys.readouterr().err
    assert list_runs(Path("runs")) == []


def test_all_over_again(words: list[str]) -> None:
    """--again runs what has a VALID run of the same configuration and code."""
    for again in ((), ("--again",)):
        assert main([*words, *again, "-m", "seed=0"]) == OK
    assert len(list_runs(Path("runs"))) == 2


def test_ctrl_c_closes_the_runs_and_the_table(tmp_path: Path) -> None:
    """The run under way is kept as interrupted, the other has not started; exit 130, nobody is left."""
    held = ("backend=sim", "backend.clock=paced", "backend.speed=1e-6")  # it never ends by itself
    words = ("+experiment=tool_agent", *held, "--jobs", "1", "-m", "seed=0,1")
    command = [sys.executable, "-m", "vertumnus", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as sweep:
        while not list((tmp_path / "runs").glob("*/facts.log")):
            assert sweep.poll() is None
            time.sleep(0.02)
        sweep.send_signal(signal.SIGINT)
        out, _ = sweep.communicate(timeout=300)
    assert sweep.returncode == INTERRUPTED
    assert [row[2] for row in rows(out)[1:]] == ["interrupted", "not"]
    assert [each.status for each in list_runs(tmp_path / "runs")] == ["interrupted"]
