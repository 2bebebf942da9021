"""The newest records of the log, one a line."""

from msgspec import structs
from textual.content import Content

from vertumnus.domain.codec import INPUT, ORDER
from vertumnus_console.folds import Told
from vertumnus_console.looks.log import log
from vertumnus_console.panes.page import Page
from vertumnus_console.player import Look, Snapshot
from vertumnus_console.words import clock, cropped

LONGEST = 240
"""Characters of a record: a prompt's block keys are thousands."""
MARKS = {INPUT: ">", ORDER: "<"}


class LogPane(Page):
    """The screen that answers: what exactly was said?"""

    LOOK = Look("log", log, every=3)

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._shown: tuple[Told, ...] = ()

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*."""
        looked = snapshot.looked
        if looked is None or looked.name != self.LOOK.name or looked.content is self._shown:
            return
        self._shown = looked.content
        self.tell(Content("\n").join([line(told) for told in looked.content]))


def line(told: Told) -> Content:
    """Return one record with its time and its fields."""
    fields = ((name, value) for name, value in structs.asdict(told.body).items() if name != "at")
    text = " ".join(f"{name}={value}" for name, value in fields)
    mark = MARKS.get(told.source, ".")
    return Content.assemble(
        f"{clock(told.t_ns):>9} {mark} ", (type(told.body).__name__, "bold"), f" {cropped(text, LONGEST)}"
    )
