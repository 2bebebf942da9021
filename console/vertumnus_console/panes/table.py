"""A table of fixed columns of which a tick touches only the cells that changed."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text
from textual.widgets import DataTable

from vertumnus_console.words import cropped


class Column(NamedTuple):
    """One column."""

    name: str
    width: int
    """The gap to the next column included; fixed, since measuring cells costs more than drawing them."""
    is_right: bool = False


class Table(DataTable[Text]):
    """Rows by their place; the cursor stays where it is."""

    def __init__(self, columns: Sequence[Column], *, id: str) -> None:
        super().__init__(id=id, cursor_type="row", cell_padding=0, zebra_stripes=True)
        self._columns = tuple(columns)
        self._shown: list[tuple[str, ...]] = []

    def on_mount(self) -> None:
        """Make the columns."""
        for column in self._columns:
            self.add_column(_cell(column, column.name), width=column.width, key=column.name)

    def fill(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Show *rows*."""
        while len(self._shown) > len(rows):
            self._shown.pop()
            self.remove_row(str(len(self._shown)))
        for place, row in enumerate(rows):
            if place == len(self._shown):
                cells = (_cell(column, text) for column, text in zip(self._columns, row, strict=True))
                self.add_row(*cells, key=str(place))
                self._shown.append(row)
            elif row != self._shown[place]:
                self._update(place, row)

    def _update(self, place: int, row: tuple[str, ...]) -> None:
        for column, text, before in zip(self._columns, row, self._shown[place], strict=True):
            if text != before:
                self.update_cell(str(place), column.name, _cell(column, text))
        self._shown[place] = row


def _cell(column: Column, text: str) -> Text:
    width = column.width - 1
    fitted = cropped(text, width)
    # Text, not str: the table reads markup in a str
    return Text(fitted.rjust(width) if column.is_right else fitted)
