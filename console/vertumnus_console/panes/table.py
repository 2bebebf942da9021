"""A table of plain text with a cursor, made for pictures several times a second.

Textual's DataTable renders every visible cell anew when one of them changes, 0.2 s a picture on 50 lines of 9
columns; here a line is one string.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from vertumnus_console.words import cropped


class Column(NamedTuple):
    """One column."""

    name: str
    width: int
    """The gap to the next column included."""
    is_right: bool = False
    is_wide: bool = False
    """Whether it takes what a wide screen has left."""


class Table(ScrollView, can_focus=True):
    """Rows by their place below a line of names; the cursor stays where it is."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"table--names", "table--cursor", "table--odd", "table--even"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
    ]

    def __init__(self, columns: Sequence[Column], empty: str, *, id: str) -> None:
        """Show *columns*; *empty* says why there are no rows."""
        super().__init__(id=id)
        self._columns = tuple(columns)
        self._empty = empty
        self._rows: Sequence[tuple[Any, ...]] = ()
        self.cursor_row = 0

    @property
    def rows(self) -> Sequence[tuple[Any, ...]]:
        """What is shown."""
        return self._rows

    def cells(self, row: Any) -> tuple[str, ...]:
        """Return the cells of *row*, once it is seen; where that is work, it is not done for all of them."""
        cells: tuple[str, ...] = row
        return cells

    def fill(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Show *rows*: their cells, or what `cells` makes them of."""
        if rows == self._rows:
            return
        is_as_long = len(rows) == len(self._rows)
        self._rows = rows
        if not is_as_long:
            self._measure()
            self.cursor_row = max(0, min(self.cursor_row, len(rows) - 1))
        self.refresh()

    def move_cursor(self, row: int) -> None:
        """Put the cursor on *row*, or as near to it as there are rows, and bring it into sight."""
        self.cursor_row = max(0, min(row, len(self._rows) - 1))
        self.scroll_to_region(Region(0, self.cursor_row, 1, 2), animate=False, force=True)
        self.refresh()

    def action_page(self, pages: int) -> None:
        """Move the cursor by *pages* of what is seen."""
        self.move_cursor(self.cursor_row + pages * max(1, self.size.height - 2))

    def on_click(self, event: Click) -> None:
        """Put the cursor where the click was."""
        if event.y > 0:
            self.move_cursor(event.y - 1 + self.scroll_offset.y)

    def on_resize(self, event: Resize) -> None:
        """Give the wide column what there is."""
        self._measure()

    def render_line(self, y: int) -> Strip:
        """Return line *y* of what is seen: the names, or a row."""
        width = self.scrollable_content_region.width
        if y == 0:
            return self._line([column.name for column in self._columns], "table--names", width)
        place = y - 1 + self.scroll_offset.y
        if y == 1 and not self._rows:
            return Strip([Segment(f" {self._empty}".ljust(width), self.rich_style)]).crop(0, width)
        if place >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        style = "table--cursor" if place == self.cursor_row else ("table--even", "table--odd")[place % 2]
        return self._line(self.cells(self._rows[place]), style, width)

    def _line(self, cells: Sequence[str], style: str, width: int) -> Strip:
        extra = max(0, width - 1 - sum(column.width for column in self._columns))
        text = " " + "".join(
            _fitted(cell, column, extra) for cell, column in zip(cells, self._columns, strict=True)
        )
        rich_style = self.get_component_rich_style(style)
        return Strip([Segment(text, rich_style)]).adjust_cell_length(width, rich_style)

    def _measure(self) -> None:
        self.virtual_size = Size(sum(column.width for column in self._columns), len(self._rows) + 1)


def _fitted(text: str, column: Column, extra: int) -> str:
    width = column.width - 1 + (extra if column.is_wide else 0)
    fitted = cropped(text, width)
    return (fitted.rjust(width) if column.is_right else fitted.ljust(width)) + " "
