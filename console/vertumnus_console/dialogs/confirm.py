"""Asks before a worker is split or merged, with what it would do."""

from concurrent.futures import Future
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from vertumnus.domain.errors import ConfigError
from vertumnus_console.preview import Preview, forecasting
from vertumnus_console.words import clock

ASKED = "y or enter: do it    n or escape: leave it"
ASKED_EARLY = "y or enter: do it without the forecast    n or escape: leave it"
LOOKED_AT = "enter or escape: close; the run is over, nothing can be changed any more"
LOOK_S = 0.1
"""Between two looks whether the preview is there [s]."""


class ConfirmMove(ModalScreen[bool]):
    """Shows the preview of a move; True when the operator wants it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "answer(True)", "Do it"),
        Binding("n,escape,q", "answer(False)", "Leave it"),
    ]

    def __init__(self, title: str, preview: "Future[Preview]", *, is_asked: bool = True) -> None:
        """Show *preview*; where nothing *is_asked*, as of a run that is over, it is to be looked at."""
        super().__init__()
        self._title = title
        self._preview = preview
        self._is_asked = is_asked
        self._forecast: Future[tuple[str, ...]] | None = None
        self._is_legal = False
        self.is_settled = False
        """Whether nothing more will be shown."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as box:
            box.border_title = self._title
            yield Static("asking the pool ...", id="preview", markup=False)
            yield Static("", id="forecast", markup=False)
            yield Static("n or escape: leave it", id="choice", markup=False)

    def on_mount(self) -> None:
        """Wait for the preview."""
        self._timer = self.set_interval(LOOK_S, self._look)
        self._look()

    def action_answer(self, wanted: bool) -> None:
        """Close; a move that is not legal is never wanted, and one must have been looked at."""
        if not wanted or self._preview.done():
            self.dismiss(wanted and self._is_legal and self._is_asked)

    def _look(self) -> None:
        if self._forecast is None and self._preview.done():
            self._show()
        elif self._forecast is not None and self._forecast.done():
            error = self._forecast.exception()
            told = (f"no forecast: {error}",) if error is not None else self._forecast.result()
            self._tell("forecast", *told)
            self._tell("choice", ASKED if self._is_asked else LOOKED_AT)
            self._settle()

    def _show(self) -> None:
        error = self._preview.exception()
        if error is None:
            self._is_legal = True
            told = self._preview.result()
            self.query_one(".dialog").border_title = f"{self._title} at {clock(told.at_ns)}"
            self._tell("preview", *told.lines)
            self._tell("forecast", "next minute  forecasting, which takes a moment ...")
            self._forecast = forecasting(told.question)
            self._tell("choice", ASKED_EARLY if self._is_asked else LOOKED_AT)
        else:
            lines = error.problems if isinstance(error, ConfigError) else (str(error),)
            self._tell("preview", "not possible:", *lines)
            self._tell("choice", "enter or escape: close")
            self._settle()

    def _tell(self, part: str, *lines: str) -> None:
        self.query_one(f"#{part}", Static).update(Content("\n".join(lines)))

    def _settle(self) -> None:
        self._timer.stop()
        self.is_settled = True
