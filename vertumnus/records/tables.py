"""A run's tables as Parquet files: equal rows give equal bytes, and a file is whole or absent."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vertumnus.records.atomic import write_whole
from vertumnus.records.columns import TABLES, TABLES_VERSION, SqlType

ROW_GROUP = 65_536
"""Rows a row group: some 10 MB of requests, so that readers can skip by statistics."""

_ARROW: dict[SqlType, pa.DataType] = {
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("ms"),
    "VARCHAR[]": pa.list_(pa.string()),
}


def schema(table: str) -> pa.Schema:
    """Return the Arrow schema of *table*, one of `TABLES`."""
    fields = [pa.field(column.name, _ARROW[column.type]) for column in TABLES[table]]
    return pa.schema(fields, metadata={"schema_version": str(TABLES_VERSION)})


def write_table(path: Path, table: str, rows: Iterable[Any]) -> None:
    """Write *rows*, the row objects that the columns of *table* expect, to *path* (zstd).

    Raises OSError; then neither *path* nor a part of it is there.
    """
    kept = list(rows)
    arrays = [
        pa.array([column.value(row) for row in kept], type=_ARROW[column.type]) for column in TABLES[table]
    ]
    whole = pa.Table.from_arrays(arrays, schema=schema(table))
    write_whole(path, lambda file: pq.write_table(whole, file, compression="zstd", row_group_size=ROW_GROUP))
