"""Moves under way with their bars, then what happened, newest first."""

from collections.abc import Sequence

from textual.content import Content

from vertumnus.domain.wording import counted
from vertumnus_console.events import Event
from vertumnus_console.panes.page import Page
from vertumnus_console.player import Snapshot
from vertumnus_console.view import MoveView
from vertumnus_console.words import bar, clock

STYLES = {
    "worker_resumed": "$text-success",
    "move": "$text-success",
    "action": "$text-accent",
    "after": "$text-accent",
    "copy": "$foreground-muted",
    "worker_stalled": "$text-warning",
    "refused": "$text-warning",
}
OTHER = "$text-error"
BAR = 20


class EventsPane(Page):
    """The screen that answers: what happened?"""

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*."""
        view = snapshot.view
        self.tell(Content("\n").join([*map(move_line, view.moves), listed(view.events)]))


def listed(events: Sequence[Event]) -> Content:
    """Return one line an event."""
    if not events:
        return Content.styled(
            "no move, no copy, no action, and nothing went wrong so far", "$foreground-muted"
        )
    return Content("\n").join([event_line(event) for event in events])


def event_line(event: Event) -> Content:
    """Return one event: when, what kind, what."""
    return Content.assemble(
        f"{clock(event.t_ns):>9}  ",
        (f"{event.kind.replace('_', ' '):<9} ", STYLES.get(event.kind, OTHER)),
        event.text,
    )


def move_line(move: MoveView) -> Content:
    """Return a change of composition under way with its bar."""
    left = ", ".join(map(str, move.undrained))
    doing = (
        f"draining {left}"
        if left
        else f"{move.ranks - move.unadopted} of {counted(move.ranks, 'rank')} adopted"
    )
    return Content.assemble(
        (bar(move.progress, BAR), "$text-accent"), f" {move.progress:4.0%}  {move.move}: {doing}"
    )
