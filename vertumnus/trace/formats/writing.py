"""Rows as a file: Mooncake's format, its extension with sessions, or Parquet; the way back from reading."""

import gzip
from collections.abc import Iterable, Iterator
from json import dumps
from typing import BinaryIO, Literal, TypeAlias, cast, get_args

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.trace.formats.known import UNIT_NS
from vertumnus.trace.formats.parquet import About, write_rows
from vertumnus.trace.rows import TraceRow

Target: TypeAlias = Literal["mooncake", "mooncake_plus", "parquet"]
TARGETS: tuple[Target, ...] = get_args(Target)
MS = UNIT_NS["ms"]


class TraceWriter:
    """Writes rows in one format; lines count milliseconds."""

    def __init__(self, to: Target, block_tokens: Tokens, has_times: bool, is_packed: bool) -> None:
        if to == "mooncake" and not has_times:
            raise ConfigError("the trace has no times, which mooncake needs; write mooncake_plus or parquet")
        if to == "parquet" and is_packed:
            raise ConfigError("a Parquet file is packed already; leave out .gz")
        self._to: Target = to
        self._about = About(block_tokens=block_tokens, has_times=has_times)
        self._is_packed = is_packed
        self.written = 0
        """Rows so far."""
        self.rounded = 0
        """Times that were no whole milliseconds and were rounded."""

    def write(self, file: BinaryIO, rows: Iterable[TraceRow]) -> None:
        """Write *rows* to *file*. Raises ConfigError when the format cannot hold a row."""
        if self._to == "parquet":
            self.written = write_rows(file, rows, self._about)
        elif self._is_packed:
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:  # the same bytes every time
                cast(BinaryIO, packed).writelines(self._lines(rows))
        else:
            file.writelines(self._lines(rows))

    def _lines(self, rows: Iterable[TraceRow]) -> Iterator[bytes]:
        for row in rows:
            self.written += 1
            yield f"{dumps(self._record(row))}\n".encode()

    def _record(self, row: TraceRow) -> dict[str, object]:
        is_plus = self._to == "mooncake_plus"
        if row.block_ids is None and not is_plus:
            raise ConfigError(
                f"row {self.written} has no block ids, which mooncake needs; write mooncake_plus or parquet"
            )
        record: dict[str, object] = {}
        if is_plus and row.session is not None:
            record["session_id"] = row.session
        if self._about.has_times:
            record["timestamp"] = self._ms(row.arrival_ns)
        record |= {"input_length": row.input_tokens, "output_length": row.output_tokens}
        if row.block_ids is not None:
            record["hash_ids"] = row.block_ids
        if is_plus and row.pause_ns is not None:
            record["delay"] = self._ms(row.pause_ns)
        return record

    def _ms(self, time_ns: Nanoseconds) -> int | float:
        if time_ns % MS == 0:
            return time_ns // MS
        if self._to == "mooncake_plus":
            return time_ns / MS
        self.rounded += 1
        return round(time_ns / MS)
