"""Many processes finish runs while others read: no lock error, no partial row, nothing lost."""

import subprocess
import sys
from pathlib import Path

import duckdb

from tests.support.concurrent_runs import RUN_IDS
from vertumnus.report.store import query, rebuild_catalog

REQUESTS = 12


def test_eight_writers_and_a_reader(tmp_path: Path) -> None:
    """Every answer while they write is made of whole runs; at the end all are there, in the file too."""
    catalog = rebuild_catalog(tmp_path)
    command = [sys.executable, "-m", "tests.support.concurrent_runs", str(tmp_path)]
    answers = []
    with subprocess.Popen(command, cwd=Path(__file__).parents[2]) as writers:
        while writers.poll() is None:
            answers += query(tmp_path, "SELECT run_id, count(*) FROM requests GROUP BY run_id").rows
            with duckdb.connect(str(catalog), read_only=True) as connection:
                answers += connection.execute("SELECT run_id, requests FROM runs").fetchall()
    assert writers.returncode == 0
    assert {count for _, count in answers} <= {REQUESTS}
    with duckdb.connect(str(catalog), read_only=True) as connection:
        found = connection.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall()
    assert [run_id for (run_id,) in found] == [run_id for ids in RUN_IDS for run_id in ids]
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".")] == []
