"""Two runs side by side: what each is, its composition, then both in numbers, TTFT and news."""

from heapq import merge
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from vertumnus_console.pair import Both
from vertumnus_console.panes.cluster import in_service
from vertumnus_console.panes.differences import table
from vertumnus_console.panes.events import event_line
from vertumnus_console.panes.strip import strip
from vertumnus_console.player import Snapshot
from vertumnus_console.shown import Shown
from vertumnus_console.words import cropped, duration, sparkline

BESIDE = 140
"""Columns from which on the strips stand beside each other."""
LOWEST = 3
"""Lines of a strip at least."""
OTHERS = 16
"""Lines of this screen beside the strips and their headings."""
NEWS = 4
"""Events at least."""
SPARK_TEXT = 27
"""Characters of a sparkline's line beside it."""


class _Side(NamedTuple):
    mark: str
    shown: Shown
    snapshot: Snapshot


class SidesPane(VerticalScroll):
    """The screen that answers: what would the other one have done?"""

    def __init__(self, first: Shown, second: Shown, *, id: str) -> None:
        super().__init__(id=id)
        self._shown = first, second
        self._both: Both | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="sides"):
            for mark in ("A", "B"):
                with Vertical(classes="side"):
                    yield Static(id=f"head-{mark}", classes="head")
                    yield Static(id=f"strip-{mark}", classes="strip")
        for part in ("table", "sparks", "news"):
            yield Static(id=part)

    def show(self, both: Both) -> None:
        """Draw *both*."""
        self._both = both
        sides = [
            _Side(mark, shown, snapshot)
            for mark, shown, snapshot in zip("AB", self._shown, both, strict=True)
        ]
        is_beside = self.size.width >= BESIDE
        width = (self.size.width - 2) // 2 - 1 if is_beside else self.size.width - 2
        height = (self.size.height - OTHERS) // (1 if is_beside else 2)
        for side in sides:
            self._set(f"head-{side.mark}", _head(side, width))
            lattice = side.shown.header.lattice
            drawn = strip(side.snapshot.view.workers, lattice, width, max(LOWEST, height))
            self._set(f"strip-{side.mark}", drawn)
        self._set("table", table(both.first.view, both.second.view))
        self._set("sparks", _sparks(both, max(10, self.size.width - 2 - SPARK_TEXT)))
        news = _news(sides, max(NEWS, self.size.height // 4))
        self.query_one("#news").display = bool(news)
        self._set("news", news)

    def on_resize(self) -> None:
        """Draw anew in the room that there is now."""
        self.query_one("#sides").set_class(self.size.width >= BESIDE, "beside")
        if self._both is not None:
            self.show(self._both)

    def _set(self, part: str, content: Content) -> None:
        static = self.query_one(f"#{part}", Static)
        drawn = static.content
        if not (isinstance(drawn, Content) and content.is_same(drawn)):
            static.update(content)


def _head(side: _Side, width: int) -> Content:
    shown, snapshot = side.shown, side.snapshot
    parts = (
        f"{cropped(shown.name, 18)} …{shown.run_id[-6:]}",
        shown.execution,
        "live" if snapshot.is_live else "",
        shown.part("policy"),
        shown.part("controller"),
        in_service(snapshot.view),
    )
    return Content.assemble(
        (f"{side.mark}  ", "bold $text-accent"), (cropped("  ".join(filter(None, parts)), width - 3), "bold")
    )


def _sparks(both: Both, slices: int) -> Content:
    """Return both P90s over the last minutes on one scale."""
    values = [snapshot.view.ttft_p90[-slices:] for snapshot in both]
    most = max((value for each in values for value in each if value is not None), default=0.0)
    lines = [
        Content.assemble((f"TTFT P90 {mark} ", "bold"), sparkline(each, most))
        for mark, each in zip("AB", values, strict=True)
    ]
    return Content("\n").join(
        [lines[0] + Content.styled(f" up to {duration(most)}", "$foreground-muted"), lines[1]]
    )


def _news(sides: list[_Side], lines: int) -> Content:
    """Return the newest events of both beside copies, newest first."""
    told = merge(
        *(
            [(-event.t_ns, side.mark, event) for event in side.snapshot.view.events if event.kind != "copy"]
            for side in sides
        )
    )
    newest = [Content.styled(mark, "bold $text-accent") + event_line(event) for _, mark, event in told][
        :lines
    ]
    return Content("\n").join(newest)
