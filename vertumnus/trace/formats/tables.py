"""Traces as CSV: Azure's (2023, 2024) and BurstGPT's; lengths only, so that reuse is unknown.

* `azure`: ``TIMESTAMP`` as a date with up to nine fractional digits, ``ContextTokens``, ``GeneratedTokens``.
* `burst_gpt`: ``Timestamp`` in seconds on a grid of 1 s, ``Request tokens``, ``Response tokens``, ``Total
  tokens``; newer files have a ``Session ID``. A failed request has no response tokens.

Columns are found by their names; further ones are left alone.
"""

import csv
import re
from calendar import timegm
from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache

from vertumnus.domain.units import SECOND, Nanoseconds, Tokens
from vertumnus.domain.wording import counted
from vertumnus.trace.formats.fields import MOST_NS, MOST_TOKENS, NO_OUTPUT, RowError
from vertumnus.trace.formats.format import Reading
from vertumnus.trace.rows import TraceRow

_DATE = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))?"
)


class _Columns:
    """The cells of a table by the name of their column, and what is wrong with them."""

    def __init__(self, header: bytes, wanted: Sequence[str]) -> None:
        names = _cells(header.removeprefix(b"\xef\xbb\xbf"))
        missing = [name for name in wanted if name not in names]
        if missing:
            raise RowError(f"the header has no column {', '.join(missing)}; found {', '.join(names)}")
        self._place = {name: place for place, name in enumerate(names)}
        self._size = len(names)

    def row(self, text: bytes) -> "_Cells":
        """Return the cells of one line. Raises RowError when their number is not that of the header."""
        cells = _cells(text)
        if len(cells) != self._size:
            raise RowError(f"found {counted(len(cells), 'cell')}, must be {self._size} as in the header")
        return _Cells(cells, self._place)


class _Cells:
    """One line of a table."""

    def __init__(self, cells: Sequence[str], place: dict[str, int]) -> None:
        self._cells = cells
        self._place = place
        self.problems: list[str] = []

    def read(self, name: str, kind: Callable[[str], int], allowed: str) -> int:
        """Return what *kind* makes of a cell; a ValueError of it becomes a problem."""
        cell = self._cells[self._place[name]]
        try:
            return kind(cell)
        except ValueError:
            self.problems.append(f"{name}: found {cell!r}, must be {allowed}")
            return 0

    def tokens(self, name: str) -> Tokens:
        """Return the number of tokens in a cell; 0 is one."""
        return self.read(name, _whole, f"a whole number below {MOST_TOKENS}")

    def has(self, name: str) -> bool:
        """Return whether there is such a column and a word in it."""
        return name in self._place and bool(self._cells[self._place[name]].strip())

    def text(self, name: str) -> str:
        """Return the word in a cell."""
        return self._cells[self._place[name]]

    def row(self, arrival_ns: Nanoseconds, tokens: Tokens, output: Tokens, reading: Reading) -> TraceRow:
        """Return the row of these numbers. Raises RowError with everything that was wrong."""
        if tokens < 1 and not self.problems:
            self.problems.append(f"found a prompt of {counted(tokens, 'token')}, must be at least 1")
        if output < 1 and not reading.may_be_empty and not self.problems:
            self.problems.append(f"no output: {NO_OUTPUT}")
        if self.problems:
            raise RowError(*self.problems)
        return TraceRow(arrival_ns, tokens, output, None)


class AzureRows:
    """Rows of Azure's traces."""

    has_times = True

    def __init__(self, reading: Reading, header: bytes) -> None:
        self._reading = reading
        self._columns = _Columns(header, ("TIMESTAMP", "ContextTokens", "GeneratedTokens"))

    def of(self, text: bytes) -> list[TraceRow]:
        """Return the row of one line. Raises RowError."""
        cells = self._columns.row(text)
        at = cells.read("TIMESTAMP", _instant, "a date and time, as 2023-11-16 18:15:46.6805900")
        tokens, output = cells.tokens("ContextTokens"), cells.tokens("GeneratedTokens")
        return [cells.row(at, tokens, output, self._reading)]


class BurstGptRows:
    """Rows of BurstGPT."""

    has_times = True

    def __init__(self, reading: Reading, header: bytes) -> None:
        self._reading = reading
        self._columns = _Columns(header, ("Timestamp", "Request tokens", "Response tokens"))

    def of(self, text: bytes) -> list[TraceRow]:
        """Return the row of one line. Raises RowError."""
        cells = self._columns.row(text)
        at = cells.read("Timestamp", self._stamp, "a time, at least 0")
        tokens, output = cells.tokens("Request tokens"), cells.tokens("Response tokens")
        if cells.has("Total tokens") and cells.tokens("Total tokens") != tokens + output:
            cells.problems.append(
                f"Total tokens: found {cells.tokens('Total tokens')}, must be {tokens + output} "
                f"(Request tokens {tokens} + Response tokens {output})"
            )
        session = cells.text("Session ID") if cells.has("Session ID") else None
        return [cells.row(at, tokens, output, self._reading)._replace(session=session, follows=session)]

    def _stamp(self, cell: str) -> Nanoseconds:
        at_ns = round(float(cell) * self._reading.unit_ns)
        if not 0 <= at_ns < MOST_NS:
            raise ValueError(cell)
        return at_ns


def _cells(text: bytes) -> list[str]:
    """Return the cells of a line, with or without a carriage return at its end."""
    try:
        line = text.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise RowError(f"not UTF-8: {error}") from None
    return next(csv.reader([line]), []) if '"' in line else [cell.strip() for cell in line.split(",")]


def _whole(cell: str) -> int:
    number = int(cell)
    if not 0 <= number < MOST_TOKENS:
        raise ValueError(cell)
    return number


def _instant(cell: str) -> Nanoseconds:
    """Return a date and time as nanoseconds since 1970; without a zone it is taken as UTC."""
    found = _DATE.fullmatch(cell)
    if found is None:
        raise ValueError(cell)
    day, hours, minutes, seconds, fraction, sign, zone_hours, zone_minutes = found.groups()
    at_s = _midnight(day) + int(hours) * 3_600 + int(minutes) * 60 + int(seconds)
    if sign:
        east_s = int(zone_hours) * 3_600 + int(zone_minutes) * 60
        at_s -= east_s if sign == "+" else -east_s
    at_ns = at_s * SECOND + int((fraction or "0").ljust(9, "0"))
    if at_ns < 0:
        raise ValueError(cell)
    return at_ns


@lru_cache(maxsize=64)
def _midnight(day: str) -> int:
    return timegm(date.fromisoformat(day).timetuple())
