"""Every statement that ships answers whatever runs there are: none, one, others' versions, some under way."""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.recorded import a_changing_history, a_run, a_ulid
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import OK
from vertumnus.records.run_dir import RunDir
from vertumnus.report.aliases import ALIASES
from vertumnus.report.reports import report_names, report_sql
from vertumnus.report.store import Answer, query

PAPER = files("vertumnus.report.paper")
STATEMENTS = {
    **{name: report_sql(name) for name in report_names()},
    **{name: f"FROM {name}" for name in ALIASES},
    **{
        entry.name: entry.read_text(encoding="utf-8")
        for entry in PAPER.iterdir()
        if entry.name.endswith(".sql")
    },
}
ALWAYS_ONE_ROW = {"cache_ops", "ttft_breakdown"}
"""Reports with a total, which is there of nothing too."""


def answered(runs_dir: Path, name: str, run_id: str = a_ulid(1)) -> Answer:
    """Return the answer of statement *name*."""
    sql = STATEMENTS[name]
    return query(runs_dir, sql, {"run_id": run_id} if "$run_id" in sql else None)


def of_another_version(run: RunDir) -> None:
    """Make the tables of *run* those of a version with a column less and one more, and one table less."""
    for file in run.path.glob("*.parquet"):
        table = pq.read_table(file)
        table = table.drop_columns([table.column_names[-1], "schema_version"])
        table = table.append_column("schema_version", pa.array([99] * len(table), pa.int32()))
        pq.write_table(table.append_column("energy_j", pa.array([1.0] * len(table))), file)
    run.table("faults").unlink()


def test_the_list_says_what_each_report_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence each, whole; of a name that one alone, and no run is needed."""
    assert main(["report", "--list"]) == OK
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:])
    assert sorted(lines) == report_names()
    assert lines["summary"] == "One row: the run in numbers"
    assert all(says.count("(") == says.count(")") for says in lines.values())
    assert main(["report", "reconfigs", "--list"]) == OK
    assert lines["reconfigs"] in (out := capsys.readouterr().out) and lines["summary"] not in out


@pytest.mark.parametrize("name", STATEMENTS)
def test_without_runs(name: str, tmp_path: Path) -> None:
    """An empty answer with its columns, or the total of nothing."""
    answer = answered(tmp_path, name)
    assert answer.columns
    assert answer.rows == [] or (name in ALWAYS_ONE_ROW and len(answer.rows) == 1)


def test_one_run_and_another_of_another_version(tmp_path: Path) -> None:
    """What it says of the one is the same beside the other, and the other is answered too."""
    a_run(tmp_path, a_ulid(1), a_changing_history())
    alone = {name: answered(tmp_path, name) for name in STATEMENTS}
    of_another_version(a_run(tmp_path, a_ulid(2), a_changing_history()))
    for name, before in alone.items():
        now = answered(tmp_path, name)
        assert now.columns == before.columns
        if "$run_id" in STATEMENTS[name]:
            assert now.rows == before.rows, name
            assert answered(tmp_path, name, a_ulid(2)).columns == before.columns


def test_while_eight_processes_write(tmp_path: Path) -> None:
    """Each is answered while runs end beside it: no lock, no half of a run."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "tests.support.concurrent_runs", str(tmp_path)]
    left = list(STATEMENTS)
    with subprocess.Popen(command, cwd=root) as writers:
        while left or writers.poll() is None:
            assert answered(tmp_path, left.pop() if left else "summary").columns
    assert writers.returncode == 0
