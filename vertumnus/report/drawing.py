"""Text on a terminal or in a pipe: consoles, tables, values."""

import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.table import Table

NO_DATA = "no data"
PLAIN_WIDTH = 10_000
"""Characters a line where there is no terminal: nothing is folded or cut."""


def console_for(file: IO[str] | None = None) -> Console:
    """Return a console that draws on *file* (default: stdout) and takes all text literally.

    Where *file* is no terminal, no line is folded.
    """
    file = file or sys.stdout
    width = None if file.isatty() else PLAIN_WIDTH
    return Console(file=file, width=width, markup=False, emoji=False, highlight=False)


def grid(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], *, left: bool = False) -> Table:
    """Return a table of text in the first column and numbers in the others, or with *left* text in all."""
    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number and not left else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def cell(value: Any) -> str:
    """Return *value* for a table: numbers to four significant digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return str(value)
