"""The workers, one a row; a tick touches only the cells that changed."""

from rich.text import Text
from textual.widgets import DataTable

from vertumnus.domain.units import to_seconds
from vertumnus_console.view import ClusterView, Running, WorkerView
from vertumnus_console.words import UNDEFINED, brief, cropped, duration, percent

COLUMNS = {
    "worker": 7,
    "CP": 3,
    "ranks": 10,
    "state": 8,
    "queued": 7,
    "work": 8,
    "running R/P": 20,
    "blocks": 10,
    "hits": 5,
}
"""Name and width. Fixed, and 78 characters in all: measuring cells costs more than drawing them."""
_RIGHT = ("CP", "queued", "work", "blocks", "hits")


class WorkersPane(DataTable[Text]):
    """The screen that answers: who is busy, and with what?"""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, cursor_type="row", cell_padding=0, zebra_stripes=True)
        self._rows: dict[str, dict[str, str]] = {}

    def on_mount(self) -> None:
        """Make the columns."""
        for name, width in COLUMNS.items():
            self.add_column(_cell(name, name), width=width, key=name)

    def show(self, view: ClusterView) -> None:
        """Draw *view*."""
        rows = {str(worker.group): row(worker) for worker in view.workers}
        if rows.keys() != self._rows.keys():
            self._make(rows)
        for worker, cells in rows.items():
            before = self._rows[worker]
            for name, text in cells.items():
                if text != before[name]:
                    self.update_cell(worker, name, _cell(name, text))
        self._rows = rows

    def _make(self, rows: dict[str, dict[str, str]]) -> None:
        self.clear()
        for worker, cells in rows.items():
            self.add_row(*(_cell(name, text) for name, text in cells.items()), key=worker)
        self._rows = rows


def row(worker: WorkerView) -> dict[str, str]:
    """Return the cells of *worker* by column."""
    group = worker.group
    texts = (
        str(group),
        str(group.degree),
        f"{group.ranks[0]}-{group.ranks[-1]}" if group.degree > 1 else str(group.first_rank),
        worker.state,
        f"{worker.queued:,}",
        duration(to_seconds(worker.queue_ns)),
        _running(worker.running),
        f"{brief(worker.blocks_used)}/{brief(worker.blocks)}",
        percent(worker.hit_rate, 0),
    )
    return dict(zip(COLUMNS, texts, strict=True))


def _running(step: tuple[Running, ...]) -> str:
    """Return the step's first request with its R and P, and how many more there are."""
    if not step:
        return UNDEFINED
    first, more = step[0], f" +{len(step) - 1}" if len(step) > 1 else ""
    return f"{first.request_id} {brief(first.uncached_tokens)}/{brief(first.cached_tokens)}{more}"


def _cell(column: str, text: str) -> Text:
    width = COLUMNS[column] - 1  # a gap to the next column
    fitted = cropped(text, width)
    # Text, not str: the table reads markup in a str
    return Text(fitted.rjust(width) if column in _RIGHT else fitted)
