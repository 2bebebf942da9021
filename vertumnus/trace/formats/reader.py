"""The rows of one trace file, whatever its format; bad rows are told by file and line, or counted."""

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import Tokens
from vertumnus.domain.wording import counted
from vertumnus.trace.config import WorkloadConfig
from vertumnus.trace.formats.documents import LEvalRows, ShareGptRows
from vertumnus.trace.formats.fields import RowError
from vertumnus.trace.formats.format import HasTimes, Reading, Rows, TextFormat
from vertumnus.trace.formats.known import UNIT_NS, FormatName
from vertumnus.trace.formats.lines import Line, numbered_lines
from vertumnus.trace.formats.mooncake import BailianRows, MooncakePlusRows, MooncakeRows
from vertumnus.trace.formats.parquet import ParquetRows
from vertumnus.trace.formats.prompts import PromptRows, Usage
from vertumnus.trace.formats.sniff import sniff
from vertumnus.trace.formats.tables import AzureRows, BurstGptRows
from vertumnus.trace.plausible import block_problem, has_all_blocks
from vertumnus.trace.rows import TraceRow

HEAD_ROWS = 100
"""Rows that the block size is checked on."""
MOST_PROBLEMS = 20
"""A file with this many bad rows is refused without reading on."""

TEXT_FORMATS: Mapping[FormatName, TextFormat] = {
    "mooncake": TextFormat(MooncakeRows),
    "mooncake_plus": TextFormat(MooncakePlusRows),
    "bailian": TextFormat(BailianRows),
    "azure": TextFormat(AzureRows, has_header=True),
    "burst_gpt": TextFormat(BurstGptRows, has_header=True),
    "share_gpt": TextFormat(ShareGptRows),
    "l_eval": TextFormat(LEvalRows),
    "prompts": TextFormat(PromptRows),
}
"""The formats of lines; `parquet` is the other one."""


class _NumberedRow(NamedTuple):
    line: int
    row: TraceRow


class TraceReader:
    """The rows of the file at *path*, in the file's order, never all in memory; iterate once.

    Of the workload only what tells how to read counts. Raises ConfigError when the file is missing, cut
    or damaged, when block_tokens is not the file's, and, with bad_rows=error, for bad rows: all of
    them at once, up to *most_problems*.
    """

    def __init__(self, workload: WorkloadConfig, path: Path, most_problems: int = MOST_PROBLEMS) -> None:
        self._path = path
        self._format: FormatName = workload.format
        self._block_tokens: Tokens = workload.trace_block_tokens
        unit = workload.stamp_unit
        self._reading = Reading(
            unit_ns=1 if unit is None else UNIT_NS[unit],
            block_tokens=self._block_tokens,
            may_be_empty=workload.empty_outputs != "error",
            chars_per_token=workload.chars_per_token,
        )
        self._keeps_empty = workload.empty_outputs == "keep"
        self._skips: bool = workload.bad_rows == "skip"
        self._most_problems = most_problems
        self._source: HasTimes | None = None
        self._problems: list[tuple[int, str]] = []
        """Line and problem of the bad rows read so far, with bad_rows=error."""
        self.skipped = 0
        """Bad rows left out so far."""
        self.empty = 0
        """Rows without output so far, which were dropped or given one token."""

    @property
    def has_times(self) -> bool:
        """Whether rows have times of their own; known when they are read."""
        return self._source is None or self._source.has_times

    @property
    def usage(self) -> Usage | None:
        """What a log of prompts says of its lengths; None where it says nothing."""
        is_told = isinstance(self._source, PromptRows) and self._source.usage.tokens > 0
        return self._source.usage if isinstance(self._source, PromptRows) and is_told else None

    def __iter__(self) -> Iterator[TraceRow]:
        parsed = self._parsed()
        head = list(islice(parsed, HEAD_ROWS))
        problem = block_problem([numbered.row for numbered in head], self._block_tokens)
        if problem:
            raise ConfigError(f"{problem} ({self._path}:{self._first_short(head)})")
        for line, row in chain(head, parsed):
            if not has_all_blocks(row, self._block_tokens):
                self._reject(line, self._wrong_blocks(row))
            elif row.output_tokens:
                yield row
            else:
                self.empty += 1
                if self._keeps_empty:
                    yield row._replace(output_tokens=1)
        if self._problems:
            raise ConfigError(*self._told())

    def _parsed(self) -> Iterator[_NumberedRow]:
        if self._format == "parquet":
            yield from self._from_parquet()
            return
        lines = numbered_lines(self._path)
        rows = self._source = self._parser(lines)
        for line in lines:
            try:
                found = rows.of(line.text)
            except RowError as error:
                self._refuse_cut(line)
                self._reject(line.number, *error.problems)
            else:
                for row in found:
                    yield _NumberedRow(line.number, row)

    def _from_parquet(self) -> Iterator[_NumberedRow]:
        rows = self._source = ParquetRows(self._path)
        if rows.about.block_tokens != self._block_tokens:
            raise ConfigError(
                f"workload.block_tokens: found {self._block_tokens}, must be {rows.about.block_tokens}, "
                f"as {self._path} says"
            )
        yield from map(_NumberedRow._make, rows)

    def _parser(self, lines: Iterator[Line]) -> Rows:
        """Return the parser of this file, after its header where the format has one."""
        text_format = TEXT_FORMATS[self._format]
        header = next(lines, None) if text_format.has_header else None
        try:
            return text_format.rows(self._reading, b"" if header is None else header.text)
        except RowError as error:
            line = 1 if header is None else header.number
            told = (f"{self._path}:{line}: {problem}" for problem in error.problems)
            raise ConfigError(*told, *self._hints(line)) from None

    def _reject(self, line: int, *problems: str) -> None:
        if self._skips:
            self.skipped += 1
            return
        self._problems += [(line, problem) for problem in problems]
        if len(self._problems) >= self._most_problems:
            raise ConfigError(
                *self._in_short(),
                f"{self._path}: too many bad rows, stopped at line {line}; {self._read_as()}",
            )

    def _read_as(self) -> str:
        """Return as what the file was read, and which format its first line is of where that is another."""
        other = self._other_format()
        return f"read as {self._format} (workload.format)" + (
            f", its first line is {other}'s" if other else ""
        )

    def _other_format(self) -> FormatName | None:
        try:
            told = sniff(self._path)
        except ConfigError:
            return None
        reads = {self._format, "mooncake"} if self._format == "mooncake_plus" else {self._format}
        return None if told in reads else told

    def _hints(self, first_bad: int) -> list[str]:
        """Return whether the format may be wrong: a file of another one is bad from its first line on."""
        return [f"{self._path}: {self._read_as()}"] if first_bad == 1 and self._other_format() else []

    def _in_short(self) -> Iterator[str]:
        """Yield the first problem of each kind, and how many more there are; what was found makes no kind."""
        kinds: dict[str, list[tuple[int, str]]] = {}
        for line, problem in sorted(self._problems, key=itemgetter(0)):
            kinds.setdefault(problem.partition("found ")[0], []).append((line, problem))
        for (line, problem), *others in kinds.values():
            more = f" (and {len(others)} more like it)" if others else ""
            yield f"{self._path}:{line}: {problem}{more}"

    def _told(self) -> list[str]:
        """Return the problems by line; those of the head's blocks were found after its others."""
        by_line = sorted(self._problems, key=itemgetter(0))
        told = [f"{self._path}:{line}: {problem}" for line, problem in by_line]
        return told + (self._hints(by_line[0][0]) if by_line else [])

    def _refuse_cut(self, line: Line) -> None:
        # skipping it would hide that unknown rows are missing behind it
        if not line.is_ended and not line.text.rstrip().endswith(b"}"):
            raise ConfigError(
                *self._told(), f"{self._path}:{line.number}: the file ends inside this line: it is cut"
            )

    def _first_short(self, head: list[_NumberedRow]) -> str:
        line, row = next(
            numbered for numbered in head if not has_all_blocks(numbered.row, self._block_tokens)
        )
        return f"{line}: {self._wrong_blocks(row)}"

    def _wrong_blocks(self, row: TraceRow) -> str:
        expected = blocks_for(row.input_tokens, self._block_tokens)
        return (
            f"hash_ids: expected {counted(expected, 'block')} "
            f"(ceil({row.input_tokens} / {self._block_tokens})), found {len(row.block_ids or ())}"
        )
