"""Figs. 2 and 4 for a measured profile, as PNG and SVG; needs the extra ``figures``.

Imports matplotlib, so that its absence must be found out before this module is imported.
"""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.profile import Form
from vertumnus.domain.units import SECOND
from vertumnus.domain.wording import counted
from vertumnus.live.fit import TimedPrefill
from vertumnus.report.palette import COLOURS, DASHES, MARKERS
from vertumnus_profiling.break_even import break_even
from vertumnus_profiling.forms import MOST_P90, FittedForms

LABELS: dict[Form, str] = {
    "published": "published (g = 0)",
    "log2": "with g·log2(C)",
    "per_degree": "per degree",
}


def draw_speedup(
    path: Path, title: str, points: Sequence[TimedPrefill], model: PrefillTimeModel
) -> list[Path]:
    """Draw Fig. 2, speed-up over the smallest degree against prompt length; return the files."""
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    base, *larger = model.degrees
    for place, degree in enumerate(larger):
        _draw_degree(axes, place, degree, base, points, model)
    axes.axhline(1.0, color="0.4", linewidth=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(_tokens))
    axes.set_xlabel("uncached tokens, nothing cached [tokens]")
    axes.set_ylabel(f"prefill speed-up over CP{base} [×]")
    axes.set_title(fill(title, 90), fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return _saved(figure, path)


def draw_accuracy(
    path: Path, title: str, points: Sequence[TimedPrefill], forms: FittedForms, form: Form
) -> list[Path]:
    """Draw Fig. 4, predicted against measured times and the errors' distribution; return the files."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    scatter, distribution = figure.subplots(1, 2)
    _draw_scatter(scatter, points, forms.model(form))
    scatter.set_title(f"{LABELS[form]}", fontsize=9)
    for place, each in enumerate(forms.held_out):
        errors = np.sort(forms.held_out[each]) * 100
        share = np.arange(1, len(errors) + 1) / len(errors)
        distribution.step(
            errors, share, where="post", color=COLOURS[place], linestyle=DASHES[place], label=LABELS[each]
        )
    distribution.axhline(0.9, color="0.4", linewidth=1)
    distribution.axvline(MOST_P90 * 100, color="0.4", linewidth=1, linestyle=":")
    distribution.set_xlim(left=0)
    distribution.set_ylim(0, 1)
    distribution.set_xlabel("held-out error of a prediction [%]")
    distribution.set_ylabel("share of points")
    distribution.set_title("line at P90; dotted: what a P90 may be", fontsize=9)
    distribution.grid(alpha=0.3)
    distribution.legend(fontsize=8, loc="lower right")
    figure.suptitle(fill(title, 140), fontsize=9)
    return _saved(figure, path)


def _draw_degree(
    axes: Axes, place: int, degree: int, base: int, points: Sequence[TimedPrefill], model: PrefillTimeModel
) -> None:
    alone = {point.uncached: point.seconds for point in points if point.degree == base and not point.cached}
    together = [point for point in points if point.degree == degree and not point.cached]
    lengths = [point.uncached for point in together]
    colour = COLOURS[place % len(COLOURS)]
    even = break_even(model, degree, base)
    axes.plot(
        lengths,
        [alone[point.uncached] / point.seconds for point in together],
        MARKERS[place % len(MARKERS)],
        color=colour,
        label=f"CP{degree} measured",
    )
    curve = np.unique(np.geomspace(min(lengths), max(lengths), 200).astype(int)).tolist()
    told = "no break-even" if even is None else f"break-even {counted(even, 'token')}"
    axes.plot(
        curve,
        [model.predict(base, tokens, 0) / model.predict(degree, tokens, 0) for tokens in curve],
        DASHES[place % len(DASHES)],
        color=colour,
        label=f"CP{degree} model, {told}",
    )


def _draw_scatter(axes: Axes, points: Sequence[TimedPrefill], model: PrefillTimeModel) -> None:
    ends = [min(point.seconds for point in points) * 700, max(point.seconds for point in points) * 1_400]
    axes.plot(ends, ends, color="0.4", linewidth=1)
    for place, degree in enumerate(model.degrees):
        of_degree = [point for point in points if point.degree == degree]
        axes.plot(
            [point.seconds * 1e3 for point in of_degree],
            [model.predict(degree, point.uncached, point.cached) / SECOND * 1e3 for point in of_degree],
            MARKERS[place % len(MARKERS)],
            color=COLOURS[place % len(COLOURS)],
            markersize=5,
            label=f"CP{degree}",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(_plain))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("measured prefill [ms]")
    axes.set_ylabel("predicted prefill [ms]")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _saved(figure: Figure, path: Path) -> list[Path]:
    files = [path.with_name(f"{path.name}.{kind}") for kind in ("png", "svg")]
    for file in files:
        figure.savefig(file, dpi=150)
    return files


def _tokens(value: float, _place: int | None) -> str:
    return f"{value / 1024:g}K" if value >= 1024 else f"{value:g}"


def _plain(value: float, _place: int | None) -> str:
    return f"{value:g}"
