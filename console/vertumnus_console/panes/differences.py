"""Two runs at one instant in numbers, and what the second differs by."""

from typing import NamedTuple

from textual.content import Content

from vertumnus_console.view import ClusterView
from vertumnus_console.words import UNDEFINED, duration, percent, rate


class Row(NamedTuple):
    """One quantity."""

    name: str
    first: str
    second: str
    change: str
    """Of the second against the first; "" where nothing is compared."""


def rows(first: ClusterView, second: ClusterView) -> list[Row]:
    """Return what is compared: the last minute, then the whole run, then counts."""
    return [
        _time("TTFT mean, 60 s", first.recent.ttft_mean_s, second.recent.ttft_mean_s),
        _time("TTFT P90, 60 s", first.recent.ttft_p90_s, second.recent.ttft_p90_s),
        _share("attainment, 60 s", first.recent.attainment, second.recent.attainment),
        _time("TTFT mean, run", first.whole.ttft_mean_s, second.whole.ttft_mean_s),
        _share("attainment, run", first.whole.attainment, second.whole.attainment),
        Row("arrivals, 60 s", rate(first.arrival_rate), rate(second.arrival_rate), ""),
        _count("queued", first.counts.queued, second.counts.queued),
        _count("finished", first.counts.finished, second.counts.finished),
    ]


def table(first: ClusterView, second: ClusterView) -> Content:
    """Return the comparison as lines of fixed columns."""
    head = Content.styled(_line(Row("", "A", "B", "B against A")), "bold")
    return Content("\n").join([head, *(Content(_line(row)) for row in rows(first, second))])


def _line(row: Row) -> str:
    return f"{row.name:<18}{row.first:>13}{row.second:>13}{row.change:>15}"


def _time(name: str, first: float | None, second: float | None) -> Row:
    change = UNDEFINED if first is None or second is None or not first else f"{second / first - 1.0:+.1%}"
    return Row(name, duration(first), duration(second), change)


def _share(name: str, first: float | None, second: float | None) -> Row:
    change = UNDEFINED if first is None or second is None else f"{100.0 * (second - first):+.1f} points"
    return Row(name, percent(first), percent(second), change)


def _count(name: str, first: int, second: int) -> Row:
    return Row(name, f"{first:,}", f"{second:,}", f"{second - first:+,}")
