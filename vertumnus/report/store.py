"""All runs as SQL tables: DuckDB views over the Parquet files of the runs that have ended.

A view names its files one by one, by absolute path, so that half-written runs are never touched
and the catalog works from every folder. Each view has the columns of `TABLES`, whatever older or
newer runs lack or add, and is empty where there is no run. Queries run on views of their own in
memory and hold no lock; the catalog file is for other programs, and nothing here reads it.
"""

import io
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow.parquet as pq

from vertumnus.domain.errors import ConfigError, VertumnusError
from vertumnus.records.columns import TABLES
from vertumnus.records.run_dir import RunDir, list_runs
from vertumnus.report.aliases import ALIASES, alias_sql, aliases_in
from vertumnus.report.views import quoted, view_sql

CATALOG = "catalog.duckdb"

_READING = {duckdb.StatementType.SELECT, duckdb.StatementType.MULTI}
"""MULTI is what PIVOT unfolds to; EXPLAIN is left out, since EXPLAIN ANALYZE carries out a COPY."""


class Answer(NamedTuple):
    """A query's result."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def dicts(self) -> list[dict[str, Any]]:
        """Return the rows by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def query(
    runs_dir: Path,
    sql: str,
    parameters: Mapping[str, object] | None = None,
    *,
    only: Collection[str] | None = None,
) -> Answer:
    """Return the answer to one reading statement over the ended runs below *runs_dir*.

    With *only* no files but those of these runs are opened. Raises ConfigError with DuckDB's message and the
    tables there are when it cannot be answered.
    """
    with _asked(runs_dir, sql, parameters, only) as relation:
        return Answer(tuple(relation.columns), [tuple(map(_plain, row)) for row in relation.fetchall()])


def query_parquet(
    runs_dir: Path,
    sql: str,
    parameters: Mapping[str, object] | None = None,
    *,
    only: Collection[str] | None = None,
) -> bytes:
    """Return the same answer as the bytes of a Parquet file; raises ConfigError likewise."""
    with _asked(runs_dir, sql, parameters, only) as relation:
        file = io.BytesIO()
        pq.write_table(relation.to_arrow_table(), file, compression="zstd")
        return file.getvalue()


class CatalogError(VertumnusError):
    """The catalog could not be written; the runs that it would list are whole."""

    def __init__(self, catalog: Path, error: Exception) -> None:
        """Name the *catalog* and the *error* of the disk."""
        told = " ".join(str(error).rpartition("Original error: ")[2].split())  # of DuckDB, what was first
        why = (isinstance(error, OSError) and error.strerror) or told
        super().__init__(
            f"{catalog}: cannot be written: {why}; the runs are whole, and the next one to end writes it"
        )


def rebuild_catalog(runs_dir: Path) -> Path:
    """Write the catalog of the runs below *runs_dir* as a DuckDB file; readers see old or new.

    Several processes may do this at once. Raises CatalogError.
    """
    catalog = runs_dir / CATALOG
    runs_dir.mkdir(parents=True, exist_ok=True)
    listed: list[RunDir] | None = None
    # a slower process may have put an older list in place of ours: look again after each replace
    while (ended := _ended(runs_dir)) != listed:
        listed = ended
        hidden = runs_dir / f".{CATALOG}.{os.getpid()}.{threading.get_ident()}.tmp"
        try:
            _write_catalog(hidden, listed)
            os.replace(hidden, catalog)
        except (OSError, duckdb.Error) as error:
            raise CatalogError(catalog, error) from error
        finally:
            for left in (hidden, hidden.with_name(f"{hidden.name}.wal")):
                left.unlink(missing_ok=True)
    return catalog


def _write_catalog(file: Path, runs: Sequence[RunDir]) -> None:
    with duckdb.connect() as connection:
        # storage of 1.0.0, so that every DuckDB from 1.0 on can open it
        connection.execute(f"ATTACH {quoted(str(file))} AS catalog (STORAGE_VERSION 'v1.0.0')")
        connection.execute("USE catalog")
        _create_views(connection, runs, list(TABLES))
        _create_aliases(connection, {name: alias_sql(name) for name in ALIASES})
        connection.execute("USE memory")
        connection.execute("DETACH catalog")


@contextmanager
def _asked(
    runs_dir: Path, sql: str, parameters: Mapping[str, object] | None, only: Collection[str] | None
) -> Iterator[duckdb.DuckDBPyRelation]:
    runs = [run for run in _ended(runs_dir) if only is None or run.run_id in only]
    aliases = aliases_in(sql)
    asked = "\n".join([sql, *aliases.values()]).lower()
    # a view opens all its files when it is made: a table that is not named needs none
    named = [table for table in TABLES if table in asked]
    with duckdb.connect() as connection:
        try:
            _create_views(connection, runs, named)
            _create_aliases(connection, aliases)
            statements = duckdb.extract_statements(sql)
            if len(statements) != 1 or statements[0].type not in _READING:
                raise ConfigError("sql: one SELECT statement is needed; runs can be read, not changed")
            yield connection.sql(sql, params=dict(parameters) if parameters else None)
        except duckdb.Error as error:
            message = " ".join(str(error).rstrip("^ ").split())
            tables = ", ".join((*TABLES, *ALIASES))
            raise ConfigError(f"sql: {message}; tables: {tables}; sql --schema has their columns") from error


def _ended(runs_dir: Path) -> list[RunDir]:
    return [listing.run for listing in list_runs(runs_dir) if listing.verdict is not None]


def _create_views(
    connection: duckdb.DuckDBPyConnection, runs: Sequence[RunDir], filled: Sequence[str]
) -> None:
    """Create a view of every table; those not in *filled* are empty."""
    for table in TABLES:
        files = [run.table(table).resolve() for run in runs] if table in filled else []
        connection.execute(f"CREATE VIEW {table} AS {view_sql(table, [f for f in files if f.exists()])}")


def _create_aliases(connection: duckdb.DuckDBPyConnection, aliases: Mapping[str, str]) -> None:
    """Create the views *aliases*, by name, of the tables that are there."""
    for name, sql in aliases.items():
        connection.execute(f"CREATE VIEW {name} AS {sql}")


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value
