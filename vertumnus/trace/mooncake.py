"""Reader of the Mooncake traces (FAST '25): one JSON object a line, with hash ids for the prefix.

A row has ``timestamp``, ``input_length``, ``output_length`` and ``hash_ids``, one id per block of
the prompt, the last of which may be partial. Further fields are left alone.
"""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.trace.lines import Line, numbered_lines
from vertumnus.trace.plausible import UNIT_NS, Unit, block_problem, has_all_blocks
from vertumnus.trace.rows import TraceRow

HEAD_ROWS = 100
"""Rows that the block size is checked on."""
MOST_PROBLEMS = 20
"""A file with this many bad rows is refused without reading on."""
MOST_TOKENS: Tokens = 2**31
MOST_NS: Nanoseconds = 2**62
MOST_ID = 2**63


class RowError(ValueError):
    """What is wrong with one row, field by field."""

    def __init__(self, *problems: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class _NumberedRow(NamedTuple):
    line: int
    row: TraceRow


class MooncakeReader:
    """The rows of one file, in the file's order; iterate once.

    Raises ConfigError when the file is missing, cut or damaged, when *block_tokens* is not the
    file's, and, with bad_rows=error, for bad rows: all of them at once, up to MOST_PROBLEMS.
    """

    def __init__(
        self, path: Path, unit: Unit, block_tokens: Tokens, bad_rows: Literal["error", "skip"] = "error"
    ) -> None:
        self._path = path
        self._unit_ns = UNIT_NS[unit]
        self._block_tokens = block_tokens
        self._skips = bad_rows == "skip"
        self._problems: list[str] = []
        self.skipped = 0
        """Bad rows left out so far."""

    def __iter__(self) -> Iterator[TraceRow]:
        parsed = self._parsed()
        head = list(islice(parsed, HEAD_ROWS))
        problem = block_problem([numbered.row for numbered in head], self._block_tokens)
        if problem:
            raise ConfigError(f"{problem} ({self._path}:{self._first_short(head)})")
        for line, row in chain(head, parsed):
            if has_all_blocks(row, self._block_tokens):
                yield row
            else:
                self._reject(line, self._wrong_blocks(row))
        if self._problems:
            raise ConfigError(*self._problems)

    def _parsed(self) -> Iterator[_NumberedRow]:
        for line in numbered_lines(self._path):
            try:
                yield _NumberedRow(line.number, parse_row(line.text, self._unit_ns))
            except RowError as error:
                self._refuse_cut(line)
                self._reject(line.number, *error.problems)

    def _reject(self, line: int, *problems: str) -> None:
        if self._skips:
            self.skipped += 1
            return
        self._problems += [f"{self._path}:{line}: {problem}" for problem in problems]
        if len(self._problems) >= MOST_PROBLEMS:
            raise ConfigError(*self._problems, f"{self._path}: too many bad rows, stopped at line {line}")

    def _refuse_cut(self, line: Line) -> None:
        # skipping it would hide that unknown rows are missing behind it
        if not line.is_ended and not line.text.rstrip().endswith(b"}"):
            raise ConfigError(
                *self._problems, f"{self._path}:{line.number}: the file ends inside this line: it is cut"
            )

    def _first_short(self, head: list[_NumberedRow]) -> str:
        line, row = next(
            numbered for numbered in head if not has_all_blocks(numbered.row, self._block_tokens)
        )
        return f"{line}: {self._wrong_blocks(row)}"

    def _wrong_blocks(self, row: TraceRow) -> str:
        expected = blocks_for(row.input_tokens, self._block_tokens)
        return (
            f"hash_ids: expected {expected} {'block' if expected == 1 else 'blocks'} "
            f"(ceil({row.input_tokens} / {self._block_tokens})), found {len(row.block_ids or ())}"
        )


def parse_row(text: bytes, unit_ns: Nanoseconds) -> TraceRow:
    """Return the row that one line spells, its stamps in units of *unit_ns*.

    Raises RowError with every field that is missing, of another type or out of bounds.
    """
    try:
        record = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RowError(f"not a JSON object: {error}") from None
    fields = _Fields(record)
    row = TraceRow(
        arrival_ns=fields.instant("timestamp", unit_ns),
        input_tokens=fields.tokens("input_length"),
        output_tokens=fields.tokens("output_length"),
        block_ids=fields.ids("hash_ids"),
    )
    if fields.problems:
        raise RowError(*fields.problems)
    return row


class _Fields:
    """Typed access to one record, which notes what is wrong and goes on."""

    def __init__(self, record: dict[str, object]) -> None:
        self._record = record
        self.problems: list[str] = []

    def tokens(self, key: str) -> Tokens:
        value = self._record.get(key)
        if type(value) is int and 1 <= value < MOST_TOKENS:
            return value
        return self._reject(key, f"a whole number from 1 to {MOST_TOKENS - 1}")

    def instant(self, key: str, unit_ns: Nanoseconds) -> Nanoseconds:
        value = self._record.get(key)
        is_whole = unit_ns < UNIT_NS["s"]
        kinds = (int,) if is_whole else (int, float)
        if type(value) in kinds and isinstance(value, int | float) and 0 <= value * unit_ns < MOST_NS:
            return round(value * unit_ns)
        return self._reject(key, "a whole number of ms, at least 0" if is_whole else "seconds, at least 0")

    def ids(self, key: str) -> tuple[int, ...]:
        value = self._record.get(key)
        if isinstance(value, list) and all(type(i) is int and 0 <= i < MOST_ID for i in value):
            return tuple(value)
        self._reject(key, "a list of whole numbers, each at least 0")
        return ()

    def _reject(self, key: str, allowed: str) -> int:
        found = f"found {_spelled(self._record[key])}, must be" if key in self._record else "missing, must be"
        self.problems.append(f"{key}: {found} {allowed}")
        return 0


def _spelled(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."
