"""The ablation of A to E as tables for people, and as plain values."""

from typing import Any

from rich.console import Console

from vertumnus.report.compare.ablation import ALL, JUDGED, MEAN, NONE, SWITCHES, Ablation, Row
from vertumnus.report.compare.metrics import Metric
from vertumnus.report.compare.show import effect_text, plain_effect, value_text
from vertumnus.report.drawing import Grid, grid

LETTERS = ", ".join(f"{letter} {key.replace('_', ' ')}" for letter, key in SWITCHES.items())
SAYS = f"""\
{LETTERS}.
{NONE} is policy=paper with beta 1, lambda 0.1. The switches added up come first, then one at a time, then
all but one. Differences are from {NONE}, paired by seed and arrivals, with a 95% interval (Student's t; of
times as ratios). Without E, D serves short requests at the expense of long ones: see their attainment."""


def print_ablation(found: Ablation, console: Console) -> None:
    """Draw a table for each metric."""
    for metric in JUDGED:
        console.print(f"{found.execution.upper()}  {metric.title}", style="bold")
        console.print(_grid(found, metric))
    console.print(SAYS)
    for line in found.left_out:
        console.print(f"left out: {line}")


def ablation_json(found: Ablation) -> dict[str, Any]:
    """Return the ablation as plain values: seconds, shares."""
    rows = [
        {
            "scenario": row.scenario or None,
            "switches": "" if row.variant == NONE else row.variant,
            "metric": metric.name,
            "value": row.values[metric.name],
            **plain_effect(row.against_none[metric.name]),
        }
        for row in found.rows
        for metric in JUDGED
    ]
    return {"execution": found.execution, "rows": rows, "left_out": found.left_out}


def _grid(found: Ablation, metric: Metric) -> Grid:
    scenarios = list(dict.fromkeys(row.scenario for row in found.rows))
    by_place = {(row.variant, row.scenario): row for row in found.rows}
    rows = []
    for variant in dict.fromkeys(row.variant for row in found.rows):
        here = [by_place.get((variant, scenario)) for scenario in scenarios]
        rows.append([_name(variant), *("" if row is None else _cell(row, metric) for row in here)])
    return grid("", ["", *scenarios], rows)


def _name(variant: str) -> str:
    if variant == NONE:
        return NONE
    return " ".join(letter if letter in variant else "-" for letter in ALL)


def _cell(row: Row, metric: Metric) -> str:
    effect = row.against_none[metric.name]
    value = value_text(row.values[metric.name], metric)
    if effect is None:
        return value
    return effect_text(effect, metric) if metric is not MEAN else f"{value}  {effect_text(effect, metric)}"
