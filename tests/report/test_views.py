"""Views name few files twice: equal ones are read as their first is, however many there are."""

from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.support.recorded import a_history, a_run, a_ulid
from vertumnus.domain.errors import ConfigError
from vertumnus.report.store import query
from vertumnus.report.views import view_sql


def some_files(runs_dir: Path, runs: int) -> list[Path]:
    """Return the requests of *runs* runs."""
    return [a_run(runs_dir, a_ulid(run), a_history(2)).table("requests") for run in range(runs)]


def test_a_view_of_equal_files_opens_the_first_alone(tmp_path: Path) -> None:
    """Making the view and naming it needs no other file: their contents may be gone by then."""
    first, *others = some_files(tmp_path, 5)
    sql = view_sql("requests", [first, *others])
    for file in others:
        file.write_bytes(b"")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW requests AS {sql}")
        columns = connection.execute("DESCRIBE requests").fetchall()
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT count(*) FROM requests").fetchall()
    assert "ttft_s" in {name for name, *_ in columns}


def test_each_file_is_asked_for_its_columns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the query names twice, alias views too; a table that is not named costs nothing."""
    some_files(tmp_path, 4)
    asked: list[str] = []
    read = pq.read_metadata

    def noted(file: Path) -> pq.FileMetaData:
        asked.append(file.name)
        return read(file)

    monkeypatch.setattr(pq, "read_metadata", noted)
    query(tmp_path, "SELECT * FROM aiperf JOIN vllm_bench USING (run_id) JOIN requests USING (run_id)")
    assert sorted(asked) == ["requests.parquet"] * 4 + ["runs.parquet"] * 4


def test_there_is_a_part_for_each_set_of_columns(tmp_path: Path) -> None:
    """Ten files of which every other lacks a column are read in two parts."""
    files = some_files(tmp_path, 10)
    for file in files[::2]:
        pq.write_table(pq.read_table(file).drop_columns(["gpu_s"]), file)
    assert view_sql("requests", files).count("read_parquet(") == 2
    (row,) = query(tmp_path, "SELECT count(*), count(gpu_s) FROM requests").rows
    assert row == (20, 10)


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    """Not as DuckDB's error in the middle of a query."""
    first, second = some_files(tmp_path, 2)
    second.write_text("no table")
    with pytest.raises(ConfigError, match=f"{second.resolve()}: cannot be read as Parquet"):
        query(tmp_path, "FROM requests")
    assert len(query(tmp_path, "FROM requests", only=[first.parent.name]).rows) == 2
