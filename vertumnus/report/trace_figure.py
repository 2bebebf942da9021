"""A trace as a picture: rate and reuse over time, mix of lengths, hot prefixes; needs the extra ``figures``.

Imports matplotlib, so that its absence must be found out before this module is imported.
"""

from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vertumnus.records.atomic import write_whole
from vertumnus.trace.details import TraceDetails

BLUE, ORANGE = "#0072B2", "#D55E00"
"""Of Okabe and Ito's palette, told apart with any colour vision; hatches differ as well."""


def draw_trace(path: Path, name: str, details: TraceDetails) -> None:
    """Draw *details* to *path*, whose suffix tells the kind of file."""
    figure = Figure(figsize=(10.0, 6.4), layout="constrained")
    (rate, lengths), (reuse, prefixes) = figure.subplots(2, 2)
    _draw_rate(rate, details)
    _draw_reuse(reuse, details)
    _draw_lengths(lengths, details)
    _draw_prefixes(prefixes, details)
    figure.suptitle(fill(name, 120), fontsize=10)
    write_whole(path, lambda file: figure.savefig(file, format=path.suffix[1:], dpi=150))


def _draw_rate(axes: Axes, details: TraceDetails) -> None:
    starts, unit = _times(details)
    rates = [bin.requests / bin.length_s for bin in details.over_time]
    axes.step([*starts, starts[-1] + _bin(details)], [*rates, rates[-1]], where="post", color=BLUE)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time [{unit}]")
    axes.set_ylabel("arrivals [req/s]")
    axes.set_title(f"arrivals, in bins of {details.bin_s:g} s", fontsize=9)
    axes.grid(alpha=0.3)


def _draw_reuse(axes: Axes, details: TraceDetails) -> None:
    axes.set_title("reuse with an unlimited cache, whole blocks", fontsize=9)
    if details.oracle_reuse is None:
        _say(axes, "unknown: no block ids")
        return
    starts, unit = _times(details)
    shares = [np.nan if bin.oracle_reuse is None else bin.oracle_reuse * 100 for bin in details.over_time]
    axes.step([*starts, starts[-1] + _bin(details)], [*shares, shares[-1]], where="post", color=BLUE)
    axes.axhline(details.oracle_reuse * 100, color="0.4", linestyle="--", label="over all")
    axes.set_ylim(0, 100)
    axes.set_xlabel(f"time [{unit}]")
    axes.set_ylabel("share of input tokens [%]")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _draw_lengths(axes: Axes, details: TraceDetails) -> None:
    places = np.arange(len(details.lengths))
    requests = [bin.request_share * 100 for bin in details.lengths]
    tokens = [bin.token_share * 100 for bin in details.lengths]
    axes.bar(places - 0.2, requests, 0.4, color=BLUE, label="of requests")
    axes.bar(places + 0.2, tokens, 0.4, color=ORANGE, hatch="//", edgecolor="white", label="of input tokens")
    ends = [bin.below_tokens for bin in details.lengths]
    names = ["longer" if end is None else f"< {end // 1_024}K" for end in ends]
    axes.set_xticks(places, names)
    axes.set_xlabel("input length [tokens]")
    axes.set_ylabel("share [%]")
    axes.set_title("mix of lengths", fontsize=9)
    axes.grid(alpha=0.3, axis="y")
    axes.legend(fontsize=8)


def _draw_prefixes(axes: Axes, details: TraceDetails) -> None:
    axes.set_title("hot prefixes: prompts that begin alike", fontsize=9)
    if not details.families:
        _say(axes, "none that 1 % of the requests share")
        return
    places = np.arange(len(details.families))
    axes.barh(places, [family.request_share * 100 for family in details.families], color=BLUE)
    axes.set_yticks(places, [f"{family.prefix_tokens:,}" for family in details.families])
    axes.set_ylim(max(len(places), 6) - 0.5, -0.5)  # the first on top, and few bars not fat
    axes.set_xlabel("share of requests [%]")
    axes.set_ylabel("length of the prefix [tokens]")
    axes.grid(alpha=0.3, axis="x")


def _say(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
    axes.set_axis_off()


def _times(details: TraceDetails) -> tuple[list[float], str]:
    """Return the start of each bin and its unit: hours for a day, minutes for less."""
    scale, unit = _scale(details)
    return [bin.start_s / scale for bin in details.over_time], unit


def _bin(details: TraceDetails) -> float:
    return details.bin_s / _scale(details)[0]


def _scale(details: TraceDetails) -> tuple[float, str]:
    return (3_600.0, "h") if details.span_s > 4 * 3_600 else (60.0, "min")
