"""What went wrong or was refused, newest first."""

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from vertumnus.records.faults import Fault
from vertumnus_console.view import ClusterView
from vertumnus_console.words import clock

STYLES = {"worker_resumed": "$text-success", "worker_stalled": "$text-warning"}
OTHER = "$text-error"


class EventsPane(VerticalScroll):
    """The screen that answers: what happened?"""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._events: tuple[Fault, ...] | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="events-list")

    def show(self, view: ClusterView) -> None:
        """Draw *view* if its events are others than those drawn."""
        if view.events != self._events:
            self._events = view.events
            self.query_one("#events-list", Static).update(listed(view.events))


def listed(events: tuple[Fault, ...]) -> Content:
    """Return one line an event."""
    if not events:
        return Content.styled("nothing went wrong and nothing was refused so far", "$text-muted")
    return Content("\n").join([_line(event) for event in events])


def _line(event: Fault) -> Content:
    return Content.assemble(
        f"{clock(event.t_ns):>11}  ",
        (event.kind.replace("_", " ").ljust(17), STYLES.get(event.kind, OTHER)),
        event.subject,
        f": {event.reason}" if event.reason else "",
    )
