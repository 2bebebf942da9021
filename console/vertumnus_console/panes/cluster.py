"""The overview: composition, where the requests are, how they are served."""

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from vertumnus.domain.cluster import Lattice
from vertumnus_console.panes.events import listed
from vertumnus_console.panes.strip import LEGEND, strip
from vertumnus_console.totals import Service
from vertumnus_console.view import ClusterView, Counts
from vertumnus_console.words import duration, percent, rate

NEWEST = 3
"""Events on this screen."""


class ClusterPane(VerticalScroll):
    """The screen that answers: is all well?"""

    def __init__(self, lattice: Lattice, *, id: str) -> None:
        super().__init__(id=id)
        self._lattice = lattice
        self._view: ClusterView | None = None

    def compose(self) -> ComposeResult:
        for part in ("composition", "strip", "legend", "counts", "service", "newest"):
            yield Static(id=part)

    def show(self, view: ClusterView) -> None:
        """Draw *view*."""
        self._view = view
        self._set("composition", Content.styled(f"{view.composition}, {self._lattice.gpus} GPUs", "bold"))
        # a scroll bar may come: two columns less than there are
        self._set("strip", strip(view.workers, self._lattice, max(20, self.size.width - 2)))
        self._set("legend", Content.styled(LEGEND, "$text-muted"))
        self._set("counts", counts(view.counts, view.arrival_rate))
        self._set("service", service(view))
        self._set("newest", Content.assemble(("newest events\n", "bold"), listed(view.events[:NEWEST])))

    def on_resize(self) -> None:
        """Draw the strip anew in the width that there is now."""
        if self._view is not None:
            self.show(self._view)

    def _set(self, part: str, content: Content) -> None:
        self.query_one(f"#{part}", Static).update(content)


def counts(told: Counts, arrival_rate: float | None) -> Content:
    """Return the requests by where they are."""
    under_way = ("queued", told.queued), ("prefill", told.prefill), ("decode", told.decode)
    ended = (
        ("finished", told.finished),
        ("failed", told.failed),
        ("rejected", told.rejected),
        ("cancelled", told.cancelled),
    )
    return Content.assemble(
        ("requests   ", "bold"),
        f"{told.arrived:,} arrived, {rate(arrival_rate)} in the last minute\n",
        ("under way  ", "bold"),
        _listed(under_way),
        ("\nended      ", "bold"),
        _listed(ended),
    )


def service(view: ClusterView) -> Content:
    """Return TTFT and attainment of the last minute and of the run."""
    heads = ("TTFT", "mean", "P50", "P90", "attainment", "ended")
    rows = [_row("last 60 s", view.recent), _row("whole run", view.whole)]
    return Content("\n").join([Content.styled(_columns(heads), "bold"), *map(Content, rows)])


def _row(name: str, told: Service) -> str:
    times = (told.ttft_mean_s, told.ttft_p50_s, told.ttft_p90_s)
    return _columns((name, *map(duration, times), percent(told.attainment), f"{told.requests:,}"))


def _columns(cells: Iterable[str]) -> str:
    first, *others = cells
    return first.ljust(9) + "".join(cell.rjust(12) for cell in others)


def _listed(parts: Iterable[tuple[str, int]]) -> str:
    return "   ".join(f"{count:,} {name}" for name, count in parts)
