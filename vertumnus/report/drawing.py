"""Text on a terminal or in a pipe: consoles, tables, values."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table

NO_DATA = "no data"
PLAIN_WIDTH = 10_000
"""Characters a line where there is no terminal: nothing is folded or cut."""

FOLDED = 32
"""A column up to this is never folded: a run's folder is 31 characters, its id 26."""
TEXT_LEAST = 20
"""A column of longer text is not folded to less than this, nor a word broken."""
SAYS_MORE = ("", "difference")
"""Headings of columns that belong to the one before them."""


def console_for(file: IO[str] | None = None) -> Console:
    """Return a console that draws on *file* (default: stdout) and takes all text literally.

    Where *file* is no terminal, no line is folded.
    """
    file = file or sys.stdout
    width = None if file.isatty() else PLAIN_WIDTH
    return Console(file=file, width=width, markup=False, emoji=False, highlight=False)


class Grid:
    """A table; where a terminal is too narrow for all its columns, they come in parts, one below the other.

    Each part has the first column again. A number is never broken: only a column of long text folds.
    """

    def __init__(
        self, title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: bool
    ) -> None:
        self._title = title
        self._headings = headings
        self._rows = [tuple(row) for row in rows]
        self._left = left

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, places in enumerate(self._parts(console, options)):
            yield self._table(places, "" if number else self._title)

    def _parts(self, console: Console, options: ConsoleOptions) -> Iterator[list[int]]:
        """Yield the places of the columns of each part; of a table of text it is all, its words fold."""
        if self._left:
            yield list(range(len(self._headings)))
            return
        part = [0] if self._headings else []
        for bundle in self._bundles():
            wider = [*part, *bundle]
            if len(part) > 1 and self._least_width(wider, console, options) > options.max_width:
                yield part
                wider = [0, *bundle]
            part = wider
        yield part

    def _bundles(self) -> list[list[int]]:
        """Return the columns after the first, each with those that say more of it."""
        bundles: list[list[int]] = []
        for place, heading in enumerate(self._headings):
            if place and bundles and heading in SAYS_MORE:
                bundles[-1].append(place)
            elif place:
                bundles.append([place])
        return bundles

    def _least_width(self, places: Sequence[int], console: Console, options: ConsoleOptions) -> int:
        free = options.update(max_width=PLAIN_WIDTH)
        return Measurement.get(console, free, self._table(places, "")).minimum

    def _table(self, places: Sequence[int], title: str) -> Table:
        table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for place in places:
            is_text = self._left or not place
            width = self._width(place)
            table.add_column(
                self._headings[place],
                justify="left" if is_text else "right",
                overflow="fold",
                min_width=width if width <= FOLDED else TEXT_LEAST,
                no_wrap=width <= FOLDED,
            )
        for row in self._rows:
            table.add_row(*(row[place] for place in places))
        return table

    def _width(self, place: int) -> int:
        return max(map(cell_len, (self._headings[place], *(row[place] for row in self._rows))))


def grid(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: bool = False) -> Grid:
    """Return a table of text in the first column and numbers in the others, or with *left* text in all."""
    return Grid(title, headings, rows, left=left)


def cell(value: Any) -> str:
    """Return *value* for a table: numbers to four significant digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return str(value)
