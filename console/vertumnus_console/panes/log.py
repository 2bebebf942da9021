"""The newest records of the log, one a line."""

from msgspec import structs

from vertumnus.domain.codec import INPUT, ORDER
from vertumnus_console.folds import Told
from vertumnus_console.looks.log import log
from vertumnus_console.panes.table import Column, Table
from vertumnus_console.player import Look, Snapshot
from vertumnus_console.words import clock, cropped

LONGEST = 240
"""Characters of a record: a prompt's block keys are thousands."""
MARKS = {INPUT: ">", ORDER: "<"}
COLUMNS = (Column("at", 10, is_right=True), Column(" ", 2), Column("record", 66, is_wide=True))


class LogPane(Table):
    """The screen that answers: what exactly was said?"""

    LOOK = Look("log", log, every=3)

    def __init__(self, *, id: str) -> None:
        super().__init__(COLUMNS, "nothing was said so far", id=id)
        self._shown: tuple[Told, ...] = ()

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*."""
        looked = snapshot.looked
        if looked is not None and looked.name == self.LOOK.name and looked.content is not self._shown:
            self._shown = looked.content
            self.fill(looked.content)

    def cells(self, row: Told) -> tuple[str, ...]:
        """Return the cells of a record: hundreds come between two pictures of a large pool."""
        return line(row)


def line(told: Told) -> tuple[str, ...]:
    """Return the cells of one record: its time, whether it came in, its fields."""
    fields = ((name, value) for name, value in structs.asdict(told.body).items() if name != "at")
    text = " ".join(f"{name}={value}" for name, value in fields)
    mark = MARKS.get(told.source, ".")
    return clock(told.t_ns), mark, cropped(f"{type(told.body).__name__} {text}", LONGEST)
