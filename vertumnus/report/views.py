"""Views of the tables over Parquet files: what each file is asked for, and how few are opened for that.

DuckDB opens every file of a union by name whenever a view of it is made or named. Runs of one version have
equal columns: so the files are asked for them once, here, and each set of equal ones is read as its first is.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vertumnus.domain.errors import ConfigError
from vertumnus.records.columns import TABLES


def view_sql(table: str, files: Sequence[Path]) -> str:
    """Return the SELECT of *table* over *files*: its columns, NULL where a file has none, and a file's own.

    Raises ConfigError when a file is not Parquet.
    """
    has_id = table == "runs"
    columns = {column.name: column.type for column in TABLES[table]}
    typed = columns if has_id else {"run_id": "VARCHAR", **columns}
    nulls = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in typed.items())
    return " UNION ALL BY NAME ".join(
        [f"SELECT {nulls} WHERE false", *(_reading(equal, has_id=has_id) for equal in _alike(files))]
    )


def quoted(text: str) -> str:
    """Return *text* as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def _reading(files: Sequence[Path], *, has_id: bool) -> str:
    """Return the SELECT over *files*, which have equal columns."""
    listed = ", ".join(quoted(_literal_glob(str(file))) for file in files)
    # the tables themselves know no run id, so that equal runs leave equal bytes: the folder has it
    run_id = "" if has_id else "parse_path(filename)[-2] AS run_id, "
    return f"SELECT {run_id}* EXCLUDE (filename) FROM read_parquet([{listed}], filename = true)"


def _alike(files: Iterable[Path]) -> list[list[Path]]:
    """Return *files* in sets of equal columns, in the order in which each set first occurs."""
    found: dict[bytes, list[Path]] = {}
    for file in files:
        found.setdefault(_columns(file), []).append(file)
    return list(found.values())


def _columns(file: Path) -> bytes:
    """Return what is equal for files with equal columns: the schema as its writer kept it, unread."""
    try:
        end = pq.read_metadata(file)
    except (OSError, pa.ArrowException) as error:
        raise ConfigError(
            f"{file}: cannot be read as Parquet: {' '.join(str(error).split())} "
            f"(vertumnus salvage {file.parent.name} makes it anew from the log)"
        ) from error
    kept: bytes | None = (end.metadata or {}).get(b"ARROW:schema")
    return kept or str(end.schema).encode()


def _literal_glob(path: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in path)
