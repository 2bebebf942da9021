"""How well the prefill-time model predicts this run, and what the controller makes of its windows."""

from textual.content import Content

from vertumnus.domain.orders import NoteWindow
from vertumnus_console.looks.model import ModelLook, model
from vertumnus_console.panes.page import Page
from vertumnus_console.player import Look, Snapshot
from vertumnus_console.residuals import Fit
from vertumnus_console.words import clock, percent, sparkline

SPARK = 30
"""Newest steps that are drawn."""
WINDOWS = 20


class ModelPane(Page):
    """The screen that answers: are the predictions that everything rests on still right?"""

    LOOK = Look("model", model)

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*."""
        if snapshot.looked is not None and snapshot.looked.name == self.LOOK.name:
            self.tell(told(snapshot.looked.content))


def told(look: ModelLook) -> Content:
    """Return the residuals by degree, then the windows."""
    lines = [
        Content.styled(_columns("degree", "steps", "error", "bias", "P90", " newest steps, |error|"), "bold")
    ]
    lines += [_fit(fit) for fit in look.fits] or [Content("no step has ended so far")]
    lines += [Content(""), Content.styled("windows of the controller", "bold")]
    lines += [_window(note) for note in look.windows[:WINDOWS]]
    if not look.windows:
        lines.append(Content("none: this controller looks at none (controller=thresholds does)"))
    return Content("\n").join(lines)


def _columns(degree: str, steps: str, error: str, bias: str, p90: str, rest: str) -> str:
    return f"{degree:<7}{steps:>8}{error:>9}{bias:>9}{p90:>9} {rest}"


def _fit(fit: Fit) -> Content:
    errors = [abs(error) for error in fit.errors[-SPARK:]]
    line = _columns(
        f"CP{fit.degree}",
        f"{fit.steps:,}",
        percent(fit.mean_error),
        f"{fit.recent_bias:+.1%}",
        percent(fit.recent_p90),
        sparkline(errors, max(errors, default=0.0)),
    )
    return Content.assemble(line, (" DRIFT", "bold $text-error") if fit.has_drifted else "")


def _window(note: NoteWindow) -> Content:
    load = note.demand_ns / note.capacity_ns if note.capacity_ns else None
    head = (
        f"{clock(note.end_ns):>9}  {percent(load, 0):>5} of capacity, {percent(note.long_fraction, 0)} long  "
    )
    return Content.assemble(
        head, (f"{note.action}  " if note.action else "", "bold"), (note.reason, "$foreground-muted")
    )
