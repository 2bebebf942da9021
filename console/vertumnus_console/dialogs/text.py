"""A page of text over the screen."""

from concurrent.futures import Future
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

LOOK_S = 0.1
"""Between two looks whether the rest is there [s]."""


class TextScreen(ModalScreen[None]):
    """Shows a text until escape."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,question_mark,q", "dismiss", "Close"),
    ]

    def __init__(self, title: str, text: Content, later: "Future[tuple[str, ...]] | None" = None) -> None:
        """Show *text*, and below it the lines that come *later*."""
        super().__init__()
        self._title = title
        self._text = text
        self._later = later

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog") as box:
            box.border_title = Content(self._title).plain
            box.border_subtitle = "escape closes"
            yield Static(self._text, id="text")
            if self._later is not None:
                yield Static("asking the log what came of it ...", id="later", markup=False)

    def on_mount(self) -> None:
        """Wait for what comes later."""
        self._timer = self.set_interval(LOOK_S, self._look)
        self._look()

    @property
    def is_settled(self) -> bool:
        """Whether nothing more will be shown."""
        return self._later is None

    def _look(self) -> None:
        if self._later is not None and self._later.done():
            error = self._later.exception()
            told = (str(error),) if error is not None else self._later.result()
            self.query_one("#later", Static).update(Content("\n".join(told)))
            self._later = None
        if self._later is None:
            self._timer.stop()
