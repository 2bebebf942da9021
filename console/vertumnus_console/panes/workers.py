"""The workers, one a row."""

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import to_seconds
from vertumnus_console.panes.table import Column, Table
from vertumnus_console.player import Snapshot
from vertumnus_console.view import Running, WorkerView
from vertumnus_console.words import UNDEFINED, brief, cropped, duration, percent

COLUMNS = (
    Column("worker", 8),
    Column("CP", 3, is_right=True),
    Column("state", 10),
    Column("busy", 9, is_right=True),
    Column("queued", 7, is_right=True),
    Column("work", 8, is_right=True),
    Column(" running R/P", 18, is_wide=True),
    Column("blocks", 10, is_right=True),
    Column("hits", 5, is_right=True),
)
"""78 characters in all: a scroll bar may come."""


class WorkersPane(Table):
    """The screen that answers: who is busy, and with what?"""

    def __init__(self, *, id: str) -> None:
        super().__init__(COLUMNS, "no workers", id=id)
        self._groups: tuple[CpGroup, ...] = ()

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*."""
        workers = snapshot.view.workers
        self._groups = tuple(worker.group for worker in workers)
        self.fill([row(worker) for worker in workers])

    def point(self, group: CpGroup | None) -> None:
        """Put the cursor on *group*."""
        if group in self._groups:
            self.move_cursor(self._groups.index(group))

    @property
    def pointed(self) -> CpGroup | None:
        """The worker under the cursor."""
        return self._groups[self.cursor_row] if self.cursor_row < len(self._groups) else None


def row(worker: WorkerView) -> tuple[str, ...]:
    """Return the cells of *worker*."""
    group = worker.group
    return (
        str(group),
        str(group.degree),
        worker.state,
        percent(worker.busy, 0),
        f"{worker.queued:,}",
        duration(to_seconds(worker.queue_ns)),
        " " + (f"by {cropped(worker.held_by, 14)}" if worker.held_by else _running(worker.running)),
        f"{brief(worker.blocks_used)}/{brief(worker.blocks)}",
        percent(worker.hit_rate, 0),
    )


def _running(step: tuple[Running, ...]) -> str:
    """Return the step's first request with its R and P, and how many more there are."""
    if not step:
        return UNDEFINED
    first, more = step[0], f" +{len(step) - 1}" if len(step) > 1 else ""
    return f"{first.request_id} {brief(first.uncached_tokens)}/{brief(first.cached_tokens)}{more}"
