"""A comparison as tables for people, and as flat rows for programs."""

from typing import Any

from rich.console import Console

from vertumnus.report.compare.comparison import Comparison, Table
from vertumnus.report.compare.intervals import CONFIDENCE, Difference
from vertumnus.report.compare.metrics import Metric
from vertumnus.report.compare.pairing import Effect, Standing
from vertumnus.report.drawing import NO_DATA, cell, grid

LEGEND = f"""\
Differences are paired by seed and arrivals, with a {CONFIDENCE:.0%} interval (Student's t); of times and
rates they are ratios, averaged and judged as logarithms.
better, worse: than the baseline, where the interval leaves zero out; best: better than each other group.
Each interval stands for itself: of 20 comparisons of equals about one is marked."""


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Draw every table of *comparison*, then how to read them and what was left out."""
    for table in comparison.tables:
        console.print(_title(table), style="bold")
        console.print(_grid(table, comparison.metrics))
        for line in table.unpaired:
            console.print(f"not paired: {line}")
    console.print(LEGEND)
    for line in comparison.left_out:
        console.print(f"left out: {line}")


def flat_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return a row for each group, metric, stretch and scenario; durations are seconds, shares 0..1."""
    return [
        {
            "execution": table.execution,
            "scenario": table.scenario or None,
            "stretch": table.stretch,
            "group": standing.group,
            "metric": metric.name,
            "unit": metric.unit,
            "runs": standing.runs,
            "value": standing.value,
            "baseline_group": table.baseline,
            **plain_effect(standing.effect),
            "mark": standing.mark or None,
        }
        for table in comparison.tables
        for metric in comparison.metrics
        for standing in table.standings[metric.name]
    ]


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as plain values."""
    return {
        "compared": comparison.axes.compared,
        "scenario": comparison.axes.scenario,
        "confidence": CONFIDENCE,
        "rows": flat_rows(comparison),
        "unpaired": [line for table in comparison.tables for line in table.unpaired],
        "left_out": comparison.left_out,
    }


def effect_text(effect: Effect | None, metric: Metric) -> str:
    """Return the difference that *effect* tells, with its interval: "-12.3 % (-15.1, -9.4)"; "" for None."""
    if effect is None:
        return ""
    if effect.ratio is not None:
        return ratio_text(effect)
    if metric.unit == "share":
        return _with_interval(effect.difference.through(_hundredfold), "pts")
    return _with_interval(effect.difference, metric.unit)


def ratio_text(effect: Effect) -> str:
    """Return the ratio of *effect* with its interval: "-12.3 % (-15.1, -9.4)"; "" where there is none."""
    return "" if effect.ratio is None else _with_interval(effect.ratio.through(_hundredfold), "%")


def plain_effect(effect: Effect | None) -> dict[str, float | None]:
    """Return the numbers of *effect* as plain values, shares of 1."""
    found: dict[str, float | None] = {"pairs": effect.pairs if effect else None}
    for name in ("difference", "ratio"):
        each: Difference | None = getattr(effect, name) if effect else None
        found[name] = each.mean if each else None
        found[f"{name}_low"] = each.low if each else None
        found[f"{name}_high"] = each.high if each else None
    return found


def value_text(value: float | None, metric: Metric) -> str:
    """Return a value of *metric* with its unit."""
    if value is None:
        return NO_DATA
    if metric.unit == "share":
        return f"{100.0 * value:.1f} %"
    if metric.unit == "x":
        return f"{value:.2f}x"
    return f"{value:.3f} s" if metric.unit == "s" else cell(value)


def _title(table: Table) -> str:
    parts = [table.execution.upper(), table.scenario, table.stretch, f"baseline {table.baseline}"]
    return "  ".join(part for part in parts if part)


def _grid(table: Table, metrics: Any) -> Any:
    headings = ["group", "runs", "pairs"]
    for metric in metrics:
        headings += [metric.title, "difference", ""]
    first = metrics[0].name
    rows = []
    for place, standing in enumerate(table.standings[first]):
        row = [standing.group, str(standing.runs), _pairs(standing, table)]
        for metric in metrics:
            found = table.standings[metric.name][place]
            row += [value_text(found.value, metric), effect_text(found.effect, metric), _mark(found, table)]
        rows.append(row)
    return grid("", headings, rows)


def _mark(standing: Standing, table: Table) -> str:
    base = "baseline" if standing.group == table.baseline else ""
    return " ".join(part for part in (base, standing.mark) if part)


def _pairs(standing: Standing, table: Table) -> str:
    if standing.group == table.baseline:
        return ""
    return str(standing.effect.pairs if standing.effect else 0)


def _with_interval(difference: Difference, unit: str) -> str:
    mean, low, high = difference
    digits = ".1f" if unit in ("%", "pts") else ".3f"
    if low is None or high is None:
        return f"{mean:+{digits}} {unit} (one pair)"
    return f"{mean:+{digits}} {unit} ({low:+{digits}}, {high:+{digits}})"


def _hundredfold(share: float) -> float:
    return 100.0 * share
