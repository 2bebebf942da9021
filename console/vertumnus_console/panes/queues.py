"""The queues: who waits where, and who passes whom."""

from vertumnus.domain.units import to_seconds
from vertumnus_console.looks.queues import Waiting, queues
from vertumnus_console.panes.table import Column, Table
from vertumnus_console.player import Look, Snapshot
from vertumnus_console.words import brief, duration

COLUMNS = (
    Column("worker", 7),
    Column("place", 6, is_right=True),
    Column("request", 8, is_right=True),
    Column("tokens", 7, is_right=True),
    Column("P", 7, is_right=True),
    Column("s", 8, is_right=True),
    Column("waited", 8, is_right=True),
    Column("passes", 7, is_right=True),
    Column("passed by", 10, is_right=True),
    Column(" waits for", 10, is_wide=True),
)


class QueuesPane(Table):
    """The screen that answers: who waits, and why not the other way round?"""

    LOOK = Look("queues", queues)

    def __init__(self, *, id: str) -> None:
        super().__init__(COLUMNS, "nobody waits", id=id)

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*."""
        if snapshot.looked is not None and snapshot.looked.name == self.LOOK.name:
            self.fill([row(waiting) for waiting in snapshot.looked.content])


def row(waiting: Waiting) -> tuple[str, ...]:
    """Return the cells of one that waits."""
    return (
        str(waiting.worker),
        str(waiting.place),
        str(waiting.request_id),
        brief(waiting.input_tokens),
        brief(waiting.cached_tokens),
        duration(to_seconds(waiting.service_ns)),
        duration(to_seconds(waiting.waited_ns)),
        str(waiting.passes or ""),
        str(waiting.passed_by or ""),
        f" {waiting.waits_for}",
    )
