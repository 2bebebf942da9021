"""Traces as Parquet: every field of a row, and in the file's metadata what a config would declare."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from vertumnus.domain.errors import ConfigError
from vertumnus.trace.formats.lines import nearest_file
from vertumnus.trace.rows import TraceRow

BATCH_ROWS = 10_000
KEY = b"vertumnus.trace"
SCHEMA = pa.schema(
    [
        pa.field("arrival_ns", pa.int64(), nullable=False),
        pa.field("input_tokens", pa.int64(), nullable=False),
        pa.field("output_tokens", pa.int64(), nullable=False),
        pa.field("block_ids", pa.list_(pa.field("element", pa.int64(), nullable=False))),
        pa.field("session", pa.string()),
        pa.field("follows", pa.string()),
        pa.field("pause_ns", pa.int64()),
    ]
)
"""The fields of `TraceRow`, in their order."""


class About(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a trace's Parquet file says of itself."""

    block_tokens: int
    """Tokens behind one block id."""
    has_times: bool = True
    """Whether arrivals are the trace's own."""


def write_rows(file: BinaryIO, rows: Iterable[TraceRow], about: About) -> int:
    """Write *rows* to *file*, a batch at a time, and return their number."""
    schema = SCHEMA.with_metadata({KEY: msgspec.json.encode(about)})
    source, written = iter(rows), 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while batch := list(islice(source, BATCH_ROWS)):
            columns = [
                pa.array(column, type=field.type)
                for column, field in zip(zip(*batch, strict=True), schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            written += len(batch)
    return written


class ParquetRows:
    """The rows of one file, numbered from 1; iterate once.

    Raises ConfigError when the file cannot be read, is no trace, or is found damaged on the way.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = pq.ParquetFile(path)
        except FileNotFoundError:
            raise ConfigError(f"workload.path: no file {str(path)!r}{nearest_file(path)}") from None
        except (pa.ArrowException, OSError) as error:
            raise ConfigError(f"{path}: not a Parquet file, or a damaged one: {error}") from None
        self.about = self._about()
        """What the file says of itself."""

    @property
    def has_times(self) -> bool:
        """Whether rows have times of their own."""
        return self.about.has_times

    def __iter__(self) -> Iterator[tuple[int, TraceRow]]:
        passed = 0
        try:
            for batch in self._file.iter_batches(batch_size=BATCH_ROWS, columns=SCHEMA.names):
                yield from enumerate(_rows(batch), start=passed + 1)
                passed += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise ConfigError(f"{self._path}: damaged after row {passed}: {error}") from None
        finally:
            self._file.close()

    def _about(self) -> About:
        found = self._file.schema_arrow
        metadata = (found.metadata or {}).get(KEY)
        if metadata is None or not found.remove_metadata().equals(SCHEMA):
            raise ConfigError(
                f"{self._path}: not a trace that vertumnus trace convert wrote; found the columns "
                f"{', '.join(found.names)}, must be {', '.join(SCHEMA.names)}"
            )
        try:
            return msgspec.json.decode(metadata, type=About)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{self._path}: written by another version: {error}") from None


def _rows(batch: pa.RecordBatch) -> Iterator[TraceRow]:
    arrivals, inputs, outputs, blocks, sessions, follows, pauses = batch.columns
    plain = (column.to_pylist() for column in (arrivals, inputs, outputs))
    rest = (column.to_pylist() for column in (sessions, follows, pauses))
    for row in zip(*plain, _tuples(blocks), *rest, strict=True):
        yield TraceRow._make(row)


def _tuples(lists: pa.ListArray) -> Sequence[tuple[int, ...] | None]:
    """Return the lists as tuples; slices of one flat list are much faster than a list for each."""
    flat = lists.flatten().to_numpy().tolist()
    lengths = lists.value_lengths().to_pylist()
    found: list[tuple[int, ...] | None] = []
    start = 0
    for length in lengths:
        found.append(None if length is None else tuple(flat[start : start + length]))
        start += length or 0
    return found
