"""The help that ``?`` opens on every screen."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

HELP = """\
o  overview    w  workers    e  events
left, right   5 % of the run's time back or on
home, end     before the first request; the run's end, followed
space         pause or play; a replay's end plays from the start
d  dark or light    ctrl+p  all commands    q  quit; the run goes on

Overview: a line is a node, a box a worker, as wide as its degree.
"3q 1.2 s": 3 queued; predicted work left there, with the rest of
the running step. Attainment weighs requests by input tokens. All
requests count here; the report leaves the warm-up out.

Workers: running is a request, its tokens to compute (R) and cached
(P); +2: two more in that step. Blocks: in use / all. Hits: share of
input tokens found cached, of the requests that have ended.

A live run's log reaches the disk every few seconds, and what you
see is as old as the log. Nothing here changes the run.

escape or ?   close this
"""


class HelpScreen(ModalScreen[None]):
    """Keys and words."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "Close"),
    ]

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            yield Static(HELP, markup=False)
