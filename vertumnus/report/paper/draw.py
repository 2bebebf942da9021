"""Pictures to SVG and PNG in a theme; needs the extra ``figures``.

Imports matplotlib, so that its absence must be found out before this module is imported.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO
from math import ceil
from typing import NamedTuple, TypeAlias

import numpy as np
from matplotlib import rc_context, rcdefaults, rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from vertumnus.report.palette import HATCHES, MARKERS
from vertumnus.report.paper.panels import Bars, Panel, Picture, Scale, Series
from vertumnus.report.paper.theme import Theme

WIDTH = 4.0
"""Of a panel [inches]; a picture is no narrower than two of them."""
HEIGHT = 3.1
HANDLE, LETTER = 0.65, 0.075
"""Of an entry of the legend: its line with the gaps, and a letter in the mean [inches]."""
Dashes: TypeAlias = str | tuple[int, tuple[int, ...]]
LINES: tuple[Dashes, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)))
"""Dashes, which tell series apart as colours and marks do."""
HEADROOM = 1.06
"""Of an axis that begins at 0, so that the topmost mark is whole."""
AS_FILE: Mapping[str, Mapping[str, object]] = {
    "svg": {"metadata": {"Date": None}},
    "png": {"dpi": 130, "metadata": {"Software": None}},
}
"""Without dates and versions: the same numbers give the same file."""


def draw(picture: Picture, theme: Theme) -> dict[str, bytes]:
    """Return *picture* as the bytes of a file of each kind of `AS_FILE`."""
    with rc_context():
        rcdefaults()  # a matplotlibrc of the user's would make other files of the same numbers
        rcParams.update(theme.settings)  # type: ignore[arg-type]
        columns = min(picture.columns, len(picture.panels))
        rows = ceil(len(picture.panels) / columns)
        figure = Figure(figsize=(WIDTH * max(columns, 2), HEIGHT * rows + 0.35), layout="constrained")
        grid: list[Axes] = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
        places = _places(picture)
        for axes, panel in zip(grid, picture.panels, strict=False):
            _Panel(axes, panel, theme, places).draw()
        for axes in grid[len(picture.panels) :]:
            axes.set_axis_off()
        _legend(figure, grid)
        return {kind: _saved(figure, kind) for kind in AS_FILE}


def _saved(figure: Figure, kind: str) -> bytes:
    file = BytesIO()
    figure.savefig(file, format=kind, **AS_FILE[kind])  # type: ignore[arg-type]
    return file.getvalue()


def _places(picture: Picture) -> dict[str, int]:
    """Return the place of each label among the lines, or among the filled ones, of the whole picture.

    It decides colour, mark, dash and hatch.
    """
    drawn = [series for panel in picture.panels for series in panel.series if series.look != "stated"]
    parts = [name for panel in picture.panels if panel.bars for name, _ in panel.bars.parts]
    lines = [series.label for series in drawn if series.look != "area"]
    filled = [*(series.label for series in drawn if series.look == "area"), *parts]
    return {label: place for labels in (lines, filled) for place, label in enumerate(dict.fromkeys(labels))}


def _legend(figure: Figure, grid: Sequence[Axes]) -> None:
    """Put one legend for all panels above them."""
    handles: dict[str, Artist] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if handles:
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside upper center",
            ncols=_beside(list(handles), float(figure.get_figwidth())),
            handlelength=3.0,  # a whole period of every dash
            frameon=False,
        )


def _beside(labels: Sequence[str], width: float) -> int:
    """Return how many entries of the legend fit beside one another into *width* [inches], at most 6."""
    entry = HANDLE + LETTER * max(map(len, labels))
    return max(1, min(len(labels), 6, int(width / entry)))


class _Panel:
    """One panel on its axes."""

    def __init__(self, axes: Axes, panel: Panel, theme: Theme, places: Mapping[str, int]) -> None:
        self._axes = axes
        self._panel = panel
        self._theme = theme
        self._places = places

    def draw(self) -> None:
        axes, panel = self._axes, self._panel
        for mark in panel.marks:
            axes.axvline(mark, color=self._theme.faint, linewidth=1, linestyle=":")
        layers = [series for series in panel.series if series.look == "area"]
        if layers:
            self._area(layers)
        for series in panel.series:
            if series.look != "area":
                self._series(series)
        if panel.bars:
            self._bars(panel.bars)
        self._finish()

    def _series(self, series: Series) -> None:
        known = [place for place, value in enumerate(series.y) if value is not None]
        x, y = _at(series.x, known), _at(series.y, known)
        if series.look == "stated":
            self._axes.plot(
                x,
                y,
                "*",
                color=self._theme.ink,
                markersize=13,
                fillstyle="none",
                label=series.label,
                zorder=5,
            )
            return
        look = self._look(series.label)
        if series.look == "step":
            self._axes.step(x, y, where="post", color=look.colour, linestyle=look.line, label=series.label)
            return
        line = look.line if series.look == "line" else "none"
        self._axes.plot(
            x, y, color=look.colour, linestyle=line, marker=look.marker, markersize=4.5, label=series.label
        )
        if series.low and series.high and known:
            low, high = _at(series.low, known), _at(series.high, known)
            self._axes.vlines(x, low, high, color=look.colour, linewidth=1.0, alpha=0.8)

    def _area(self, layers: Sequence[Series]) -> None:
        looks = [self._look(series.label) for series in layers]
        self._axes.stackplot(
            _at(layers[0].x),
            [_at(series.y) for series in layers],
            step="post",
            labels=[series.label for series in layers],
            colors=[look.colour for look in looks],
            hatch=[look.hatch for look in looks],
            edgecolor=self._theme.page,
            linewidth=0.0,
        )

    def _bars(self, bars: Bars) -> None:
        rows = np.arange(len(bars.labels))
        left = np.zeros(len(rows))
        for name, lengths in bars.parts:
            look = self._look(name)
            width = np.array(lengths, dtype=np.float64)
            self._axes.barh(
                rows,
                width,
                left=left,
                height=0.6,
                color=look.colour,
                hatch=look.hatch,
                edgecolor=self._theme.page,
                label=name,
            )
            left += width
        self._axes.set_yticks(rows, list(bars.labels))
        self._axes.set_ylim(len(rows) - 0.4, -0.6)  # the first on top

    def _look(self, label: str) -> "_Look":
        place = self._places[label]
        return _Look(
            self._theme.series[place % len(self._theme.series)],
            LINES[place % len(LINES)],
            MARKERS[place % len(MARKERS)],
            HATCHES[place % len(HATCHES)],
        )

    def _finish(self) -> None:
        axes, panel = self._axes, self._panel
        _scale(axes, panel.x_scale, is_x=True)
        if not panel.bars:
            _scale(axes, panel.y_scale, is_x=False)
        if panel.diagonal:
            low, high = (
                max(axes.get_xlim()[0], axes.get_ylim()[0]),
                min(axes.get_xlim()[1], axes.get_ylim()[1]),
            )
            axes.plot([low, high], [low, high], color=self._theme.ink, linewidth=1)
        if panel.from_zero:
            axes.set_ylim(0.0, HEADROOM * float(axes.dataLim.y1))
        if panel.x_ticks:
            names = [name for _, name in panel.x_ticks]
            axes.set_xticks([at for at, _ in panel.x_ticks], names, rotation=30, ha="right")
        axes.set_xlabel(panel.x_label)
        axes.set_ylabel(panel.y_label)
        axes.set_title(panel.title)
        axes.grid(alpha=0.6, axis="x" if panel.bars else "both", linewidth=0.7)
        axes.set_axisbelow(True)


class _Look(NamedTuple):
    """How one label looks in all panels."""

    colour: str
    line: Dashes
    marker: str
    hatch: str


def _at(values: Sequence[float | None], places: Sequence[int] | None = None) -> NDArray[np.float64]:
    chosen = range(len(values)) if places is None else places
    return np.array(
        [np.nan if values[place] is None else values[place] for place in chosen], dtype=np.float64
    )


def _scale(axes: Axes, scale: Scale, *, is_x: bool) -> None:
    axis = axes.xaxis if is_x else axes.yaxis
    if scale == "linear":
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        return
    set_scale = axes.set_xscale if is_x else axes.set_yscale
    if scale == "tokens":
        set_scale("log", base=2)
        axis.set_major_locator(LogLocator(base=2, numticks=12))
        axis.set_major_formatter(FuncFormatter(_tokens))
    else:
        set_scale("log")
        axis.set_major_locator(LogLocator(subs=_subs(*axis.get_view_interval()), numticks=9))
        axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def _subs(low: float, high: float) -> tuple[float, ...]:
    """Return the multiples of powers of ten that are ticks from *low* to *high*, more in a short range."""
    if high > 10 * low:
        return (1.0, 2.0, 5.0)
    return (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if high > 2 * low else tuple(1 + place / 10 for place in range(90))


def _tokens(value: float, _place: int | None) -> str:
    return f"{value / 1024:g}K" if value >= 1024 else f"{value:g}"


def _plain(value: float, _place: int | None) -> str:
    return f"{value:g}"
