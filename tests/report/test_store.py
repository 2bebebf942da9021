"""The catalog shows the ended runs, whichever they are, and reads nothing else."""

import datetime
import os
from pathlib import Path

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.recorded import a_header, a_history, a_run, a_run_under_way, a_ulid
from vertumnus.domain.errors import ConfigError
from vertumnus.records.columns import TABLES, TABLES_VERSION
from vertumnus.report.aliases import ALIASES
from vertumnus.report.store import query, query_parquet, rebuild_catalog


def test_without_runs_every_table_is_there_and_empty(tmp_path: Path) -> None:
    """No runs is an empty answer with all columns, not an error; no folder likewise."""
    for runs_dir in (tmp_path, tmp_path / "nowhere"):
        for table in TABLES:
            answer = query(runs_dir, f"SELECT * FROM {table}")
            assert answer.rows == []
            assert {column.name for column in TABLES[table]} | {"run_id"} == set(answer.columns)


def test_runs_are_told_apart_by_their_id(tmp_path: Path) -> None:
    """Rows of several runs lie in one table, each with its run's id; unfinished runs are left out."""
    for number, requests in ((1, 3), (2, 5)):
        a_run(tmp_path, a_ulid(number), a_history(requests))
    a_run_under_way(tmp_path, a_ulid(3))[1].flush()
    answer = query(tmp_path, "SELECT run_id, count(*) AS n FROM requests GROUP BY run_id ORDER BY run_id")
    assert answer.rows == [(a_ulid(1), 3), (a_ulid(2), 5)]
    assert answer.dicts()[0] == {"run_id": a_ulid(1), "n": 3}


def test_two_schema_versions_are_queried_together(tmp_path: Path) -> None:
    """A run with a column less and one more than ours gives NULL where it has nothing."""
    a_run(tmp_path, a_ulid(1), a_history(2))
    other = a_run(tmp_path, a_ulid(2), a_history(2))
    table = pq.read_table(other.table("requests")).drop_columns(["gpu_s", "schema_version"])
    table = table.append_column("schema_version", pa.array([99, 99], pa.int32()))
    pq.write_table(table.append_column("energy_j", pa.array([1.0, 2.0])), other.table("requests"))
    other.table("faults").unlink()
    rows = query(
        tmp_path,
        "SELECT schema_version, count(gpu_s), sum(energy_j) FROM requests GROUP BY ALL ORDER BY 1",
    ).rows
    assert rows == [(TABLES_VERSION, 2, None), (99, 0, 3.0)]
    assert query(tmp_path, "SELECT count(*) FROM faults").rows == [(0,)]


@pytest.mark.parametrize("name", ["it's", "a[1]*?", "with space", "ünïcode"])
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    """Quotes and wildcards in a path are only characters."""
    a_run(tmp_path / name, a_ulid(1), a_history(2))
    a_run(tmp_path / "a1x", a_ulid(1), a_history(5))
    assert query(tmp_path / name, "SELECT count(*) FROM requests").rows == [(2,)]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELEC 1", r'syntax error at or near "SELEC"'),
        ("SELECT * FROM request", r"Table with name request does not exist"),
        ("SELECT nothing FROM requests", r'"nothing" not found'),
        ("SELECT 1/", "syntax error"),
        ("SELECT error('no') ", "no"),
    ],
)
def test_bad_sql_is_one_line_and_names_the_tables(tmp_path: Path, sql: str, said: str) -> None:
    """DuckDB's message on one line without its marks, then what there is to ask."""
    with pytest.raises(ConfigError, match=said) as caught:
        query(tmp_path, sql)
    (problem,) = caught.value.problems
    assert "\n" not in problem and "^" not in problem
    assert f"; tables: {', '.join((*TABLES, *ALIASES))}; sql --schema" in problem


@pytest.mark.parametrize(
    "sql",
    [
        "DROP VIEW runs",
        "COPY runs TO 'x.csv'",
        "EXPLAIN ANALYZE COPY runs TO 'x.csv'",
        "CREATE TABLE a (b INT)",
        "SELECT 1; SELECT 2",
        "",
        "-- none",
    ],
)
def test_only_one_reading_statement_is_taken(tmp_path: Path, sql: str) -> None:
    """Whatever would change or write something is refused."""
    with pytest.raises(ConfigError, match="one SELECT statement is needed"):
        query(tmp_path, sql)


@pytest.mark.parametrize("sql", ["FROM runs", "DESCRIBE requests", "SHOW TABLES", "VALUES (1)"])
def test_other_ways_to_read_are_taken(tmp_path: Path, sql: str) -> None:
    """DuckDB's short forms work."""
    query(tmp_path, sql)


def test_values_come_as_plain_python(tmp_path: Path) -> None:
    """Decimals become floats; lists, dates and NULL come as they are."""
    answer = query(tmp_path, "SELECT 1.5 AS a, [1, 2] AS b, DATE '2026-01-02' AS c, NULL AS d")
    assert answer.rows == [(1.5, [1, 2], datetime.date(2026, 1, 2), None)]
    assert type(answer.rows[0][0]) is float


def test_an_answer_as_parquet(tmp_path: Path) -> None:
    """The same rows, as the bytes of a Parquet file."""
    a_run(tmp_path, a_ulid(1), a_history(3))
    content = query_parquet(tmp_path, "SELECT request_id, ttft_s FROM requests ORDER BY 1")
    assert pq.read_table(pa.BufferReader(content)).num_rows == 3


def test_the_catalog_file_works_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program opens the file, from another folder, and finds views only."""
    monkeypatch.chdir(tmp_path)
    a_run(Path("runs"), a_ulid(1), a_history(3))
    catalog = rebuild_catalog(Path("runs")).resolve()
    a_run(Path("runs"), a_ulid(2), a_history(4))
    rebuild_catalog(Path("runs"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with duckdb.connect(str(catalog), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM requests").fetchall() == [(7,)]
        views = connection.execute(
            "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY 1"
        ).fetchall()
        assert [name for (name,) in views] == sorted((*TABLES, *ALIASES))
        assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]
    assert sorted(path.name for path in catalog.parent.iterdir()) == [a_ulid(1), a_ulid(2), "catalog.duckdb"]


def test_an_old_catalog_stays_readable_while_it_is_replaced(tmp_path: Path) -> None:
    """A reader that has the file open keeps its view of it."""
    catalog = rebuild_catalog(tmp_path)
    with duckdb.connect(str(catalog), read_only=True) as connection:
        a_run(tmp_path, a_ulid(1))
        rebuild_catalog(tmp_path)
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(0,)]


def test_stored_configuration_can_be_asked(tmp_path: Path) -> None:
    """The config column is JSON."""
    header = msgspec.structs.replace(a_header(), config={"policy": {"beta": 2.5}})
    a_run(tmp_path, a_ulid(1), header=header)
    assert query(tmp_path, "SELECT json_extract(config, '$.policy.beta')::DOUBLE FROM runs").rows == [(2.5,)]


def test_a_question_about_one_run_opens_no_other(tmp_path: Path) -> None:
    """A damaged table of another run does not stand in the way."""
    a_run(tmp_path, a_ulid(1), a_history(3))
    damaged = a_run(tmp_path, a_ulid(2))
    damaged.table("requests").write_bytes(b"not parquet")
    counted = "SELECT count(*) FROM requests"
    assert query(tmp_path, counted, only=[a_ulid(1)]).rows == [(3,)]
    with pytest.raises(ConfigError, match=r"requests\.parquet"):
        query(tmp_path, counted)


def test_a_run_that_ends_while_the_catalog_is_written_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older list never stays in place of a newer one: after each replace it is looked at again."""
    really_replace = os.replace

    def late_run_first(source: Path, target: Path) -> None:
        monkeypatch.undo()
        a_run(tmp_path, a_ulid(1))
        really_replace(source, target)

    monkeypatch.setattr(os, "replace", late_run_first)
    with duckdb.connect(str(rebuild_catalog(tmp_path)), read_only=True) as connection:
        assert connection.execute("SELECT run_id FROM runs").fetchall() == [(a_ulid(1),)]
