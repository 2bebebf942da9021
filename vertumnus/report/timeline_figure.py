"""The timeline of a run as a picture (Fig. 13); needs the extra ``figures``.

Imports matplotlib, so that its absence must be found out before this module is imported.
"""

import json
from collections.abc import Sequence
from io import BytesIO
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from vertumnus.report.palette import COLOURS, HATCHES
from vertumnus.report.timeline import OUT_OF_SERVICE, Band, Bins, Timeline, Transition

_DRAIN, _SWITCH = COLOURS[4], COLOURS[6]
_BAR = 1 / 120
"""Width of a bar as a share of the run's time."""
_FLOOR_S = 1e-4
"""Stages shorter than this are drawn as long as this, so that they can be seen."""


def draw_timeline(timeline: Timeline, kind: str) -> bytes:
    """Return *timeline* as a file of *kind*, png or svg or pdf."""
    figure = Figure(figsize=(9.6, 8.0), layout="constrained", facecolor="white")
    pool, rate, ttft, stages = figure.subplots(4, 1, sharex=True, height_ratios=(1.2, 1.0, 1.4, 1.0))
    _draw_composition(pool, timeline.t_s, timeline.bands, timeline.transitions)
    _draw_rate(rate, timeline.bins)
    _draw_ttft(ttft, timeline.bins)
    _draw_stages(stages, timeline.transitions, timeline.t_s[-1])
    for axes in (pool, rate, ttft, stages):
        for bound in timeline.phases_s:
            axes.axvline(bound, color="0.45", linewidth=1, linestyle=":")
        axes.grid(alpha=0.3)
    pool.set_xlim(0.0, float(timeline.t_s[-1]))
    stages.set_xlabel("time of the run [s]" + ("; dotted: a phase ends" if timeline.phases_s else ""))
    figure.suptitle(fill(_title(timeline), 120), fontsize=10)
    file = BytesIO()
    figure.savefig(file, format=kind, dpi=150)
    return file.getvalue()


def _title(timeline: Timeline) -> str:
    run, config = timeline.run, json.loads(timeline.run["config"])
    parts = (
        f"policy {config['policy']['name']}, controller {config['controller']['name']}, seed {run['seed']}"
    )
    verdict = "" if run["verdict"] == "VALID" else f", {run['verdict']}"
    return f"{run['execution'].upper()}: {run['name']}, {parts}, run {run['run_id']}{verdict}"


def _draw_composition(
    axes: Axes, t_s: np.ndarray, bands: Sequence[Band], transitions: Sequence[Transition]
) -> None:
    axes.stackplot(
        t_s,
        [band.ranks for band in bands],
        step="post",
        labels=[_label(band.degree) for band in bands],
        colors=["0.75" if band.degree == OUT_OF_SERVICE else _colour(band.degree) for band in bands],
        hatch=["" if band.degree == OUT_OF_SERVICE else _hatch(band.degree) for band in bands],
        edgecolor="white",
        linewidth=0.0,
    )
    axes.set_ylim(0, float(sum(band.ranks[0] for band in bands)))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("prefill ranks")
    for transition in transitions:
        axes.axvline(transition.t_s, color="black", linewidth=0.8)
    _legend(axes)


def _draw_rate(axes: Axes, bins: Bins) -> None:
    axes.stairs(bins.rate, bins.edges_s, color=COLOURS[0], linewidth=1.5)
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("arrivals\n[requests/s]")


def _draw_ttft(axes: Axes, bins: Bins) -> None:
    middle = (bins.edges_s[:-1] + bins.edges_s[1:]) / 2
    known = ~np.isnan(bins.p50_s)
    axes.plot(middle[known], bins.p90_s[known], "^--", color=COLOURS[1], markersize=4, label="P90")
    axes.plot(middle[known], bins.p50_s[known], "o-", color=COLOURS[0], markersize=4, label="median")
    _log_seconds(axes, (1.0, 2.0, 5.0))
    axes.set_ylabel("TTFT by arrival [s]")
    _legend(axes)


def _draw_stages(axes: Axes, transitions: Sequence[Transition], span_s: float) -> None:
    """Draw a bar for the drain and one for the switch of each transition, side by side."""
    width = span_s * _BAR
    tops: list[float] = []
    stages = (("drain", _DRAIN, "", -1.0), ("switch", _SWITCH, "///", 0.0))
    for name, colour, hatch, side in stages:
        known = [(each.t_s, getattr(each, f"{name}_s")) for each in transitions]
        bars = [(t_s, max(seconds, _FLOOR_S)) for t_s, seconds in known if seconds is not None]
        tops += [seconds for _, seconds in bars]
        axes.bar(
            [t_s + side * width for t_s, _ in bars],
            [seconds for _, seconds in bars],
            width=width,
            align="edge",
            color=colour,
            edgecolor="white",
            hatch=hatch,
            label=name,
        )
    _log_seconds(axes, (1.0,))
    axes.set_ylim(_FLOOR_S / 2, 10 * max([_FLOOR_S, *tops]))
    axes.set_ylabel("length of a stage [s]\n(stub: below 0.1 ms)")
    if transitions:
        _legend(axes)
    else:
        axes.text(0.5, 0.5, "no transition", ha="center", va="center", transform=axes.transAxes)


def _log_seconds(axes: Axes, labelled: Sequence[float]) -> None:
    """Label the *labelled* multiples of each power of ten."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=labelled, numticks=9))
    axes.yaxis.set_major_formatter(FuncFormatter(_plain))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _legend(axes: Axes) -> None:
    """Put the legend above the panel, where it covers nothing."""
    axes.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=8, ncols=9, frameon=False, borderaxespad=0.2
    )


def _label(degree: int) -> str:
    return "out of service" if degree == OUT_OF_SERVICE else f"CP{degree}"


def _place(degree: int) -> int:
    return (degree.bit_length() - 1) % len(COLOURS)


def _colour(degree: int) -> str:
    return COLOURS[_place(degree)]


def _hatch(degree: int) -> str:
    return HATCHES[_place(degree)]


def _plain(value: float, _place: int | None) -> str:
    return f"{value:g}"
