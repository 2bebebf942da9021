"""Pictures as data: panels with axes, units and series, which `draw` turns into files of either theme."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

Look: TypeAlias = Literal["line", "step", "points", "stated", "area"]
"""A line with marks, a staircase, marks alone, marks for what the paper states, layers on one another."""
Scale: TypeAlias = Literal["linear", "log", "tokens"]
"""Of tokens: powers of two, written as 1K, 2K, ..."""


class Series(NamedTuple):
    """N points of one kind."""

    label: str
    """Series of one label look the same in all panels of a picture; one entry of the legend."""
    x: Sequence[float]
    """Shape (N,)."""
    y: Sequence[float | None]
    """Shape (N,); None is left out."""
    look: Look = "line"
    low: Sequence[float | None] = ()
    """Lower end of each point's interval, shape (N,), or empty."""
    high: Sequence[float | None] = ()


class Bars(NamedTuple):
    """Parts of a whole, one bar a label, drawn from left to right."""

    labels: Sequence[str]
    parts: Sequence[tuple[str, Sequence[float]]]
    """Name and lengths of each part, shape (labels,)."""


class Panel(NamedTuple):
    """One pair of axes."""

    title: str
    x_label: str
    """With its unit in brackets."""
    y_label: str
    series: Sequence[Series] = ()
    bars: Bars | None = None
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    from_zero: bool = False
    """Whether the y axis begins at 0."""
    x_ticks: Sequence[tuple[float, str]] = ()
    """Places and names that take the place of numbers."""
    marks: Sequence[float] = ()
    """Places on the x axis where something changes."""
    diagonal: bool = False
    """Whether to draw y = x."""


class Picture(NamedTuple):
    """Panels side by side, in rows of *columns*."""

    name: str
    """Of its file, without an ending."""
    caption: str
    panels: Sequence[Panel]
    columns: int = 3
