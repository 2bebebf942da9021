"""The overview: composition, where the requests are, how they are served."""

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from vertumnus.domain.cluster import CpGroup, Lattice
from vertumnus.domain.units import to_seconds
from vertumnus_console.panes.events import listed, move_line
from vertumnus_console.panes.strip import LEGEND, strip
from vertumnus_console.player import Snapshot
from vertumnus_console.totals import Service
from vertumnus_console.view import ClusterView, Counts, WorkerView
from vertumnus_console.words import brief, duration, percent, rate, sparkline

OTHERS = 15
"""Lines of this screen beside the strip."""
NEWEST = 3
"""Events on this screen at least."""
ROOMY = 25
"""Lines from which on there are empty ones between its parts."""
SPARK_TEXT = 27
"""Characters of a sparkline's line beside it."""


class ClusterPane(VerticalScroll):
    """The screen that answers: is all well?"""

    def __init__(self, lattice: Lattice, *, id: str) -> None:
        super().__init__(id=id)
        self._lattice = lattice
        self._snapshot: Snapshot | None = None
        self.selected: CpGroup | None = None
        """Drawn reversed."""

    def compose(self) -> ComposeResult:
        for part in ("composition", "strip", "legend", "counts", "service", "spark", "newest"):
            yield Static(id=part)

    def show(self, snapshot: Snapshot) -> None:
        """Draw *snapshot*."""
        self._snapshot, view = snapshot, snapshot.view
        chosen = surviving(view.workers, self.selected)
        self.selected = None if chosen is None else chosen.group
        self._set("composition", composition(view, self._lattice.gpus))
        # a scroll bar may come: two columns less than there are
        width = max(20, self.size.width - 2)
        self._set(
            "strip",
            strip(view.workers, self._lattice, width, max(6, self.size.height - OTHERS), self.selected),
        )
        legend = Content.styled(LEGEND, "$foreground-muted") if chosen is None else Content(described(chosen))
        self._set("legend", legend)
        self._set("counts", counts(view.counts, view.arrival_rate))
        self._set("service", service(view))
        self._set("spark", sparks(view, max(10, width - SPARK_TEXT)))
        self._set("newest", news(view, max(NEWEST, self._room() - len(view.moves))))

    def _room(self) -> int:
        """Return the lines that are left for news."""
        used = self.query_one("#strip", Static).size.height + OTHERS - NEWEST
        return self.size.height - used - (3 if self.has_class("roomy") else 0)

    def on_resize(self) -> None:
        """Draw the strip anew in the width that there is now; where there is room, parts stand apart."""
        self.set_class(self.size.height >= ROOMY, "roomy")
        if self._snapshot is not None:
            self.show(self._snapshot)

    def _set(self, part: str, content: Content) -> None:
        static = self.query_one(f"#{part}", Static)
        drawn = static.content
        if not (isinstance(drawn, Content) and content.is_same(drawn)):  # ``==`` compares the words alone
            static.update(content)


def composition(view: ClusterView, gpus: int) -> Content:
    """Return the workers in service and, where nobody can serve any more, that."""
    told = Content.styled(f"{in_service(view)}, {gpus} GPUs", "bold")
    if view.can_serve:
        return told
    return Content.assemble(told, ("  nobody is left to serve: all requests fail", "bold $text-error"))


def in_service(view: ClusterView) -> str:
    """Return the workers in service as people write them."""
    return str(view.composition) or "no worker in service"


def surviving(workers: Iterable[WorkerView], selected: CpGroup | None) -> WorkerView | None:
    """Return the worker that is *selected*, or what was made of it: the one with its first rank."""
    if selected is None:
        return None
    return next((each for each in workers if selected.first_rank in each.group.ranks), None)


def described(worker: WorkerView) -> str:
    """Return one line on a worker: what it does, what waits there, what it has cached."""
    held = f" by {worker.held_by}" if worker.held_by else ""
    return (
        f"worker {worker.group}: {worker.state}{held}, {worker.queued}q, "
        f"{duration(to_seconds(worker.queue_ns))} of work, {percent(worker.busy, 0)} busy, "
        f"{brief(worker.blocks_used)}/{brief(worker.blocks)} blocks, {percent(worker.hit_rate, 0)} hits"
    )


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
        f"{told.arrived:,} arrived  {rate(arrival_rate)}  {_listed(under_way)}\n",
        ("ended      ", "bold"),
        _listed(ended),
    )


def news(view: ClusterView, lines: int) -> Content:
    """Return the moves under way, then the newest events beside copies, *lines* of them."""
    events = [event for event in view.events if event.kind != "copy"][:lines]
    return Content("\n").join([*map(move_line, view.moves), listed(events)])


def service(view: ClusterView) -> Content:
    """Return TTFT and attainment of the last seconds, of the last minute and of the run."""
    heads = ("TTFT", "mean", "P50", "P90", "attainment", "ended")
    spans = ("last 10 s", view.just_now), ("last 60 s", view.recent), ("whole run", view.whole)
    rows = [Content(_row(name, told)) for name, told in spans]
    return Content("\n").join([Content.styled(_columns(heads), "bold"), *rows])


def sparks(view: ClusterView, slices: int) -> Content:
    """Return the TTFT percentiles of the last *slices* slices as two sparklines on one scale."""
    high, middle = view.ttft_p90[-slices:], view.ttft_p50[-slices:]
    most = max((value for value in high if value is not None), default=0.0)
    return Content.assemble(
        ("TTFT P90   ", "bold"),
        sparkline(high, most),
        (f" up to {duration(most)}\n", "$foreground-muted"),
        ("     P50   ", "bold"),
        sparkline(middle, most),
        (" 5 s a bar", "$foreground-muted"),
    )


def _row(name: str, told: Service) -> str:
    times = (told.ttft_mean_s, told.ttft_p50_s, told.ttft_p90_s)
    return _columns((name, *map(duration, times), percent(told.attainment), f"{told.requests:,}"))


def _columns(cells: Iterable[str]) -> str:
    first, *others = cells
    return first.ljust(9) + "".join(cell.rjust(12) for cell in others)


def _listed(parts: Iterable[tuple[str, int]]) -> str:
    return "  ".join(f"{count:,} {name}" for name, count in parts)
