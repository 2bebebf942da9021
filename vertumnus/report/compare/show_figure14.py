"""Fig. 14's table for people, and as plain values."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from vertumnus.report.compare.figure14 import SHOWN, Beside, Cell, Figure14
from vertumnus.report.compare.metrics import METRICS
from vertumnus.report.compare.pairing import Effect
from vertumnus.report.compare.show import effect_text, value_text
from vertumnus.report.drawing import Grid, grid

SAYS = """\
In brackets the 95% interval over paired seeds (Student's t; of times on the logarithms of ratios). Copies
are of one run, on average: replicas within and across degrees, and blocks fetched for a request that was
placed without them. A saved ms is one of the TTFT summed over all requests; its price is what was copied
beyond the runs without a manager, and below zero where replicas saved more pulls than they cost."""


def print_figure14(figure: Figure14, console: Console) -> None:
    """Draw the figure's tables."""
    for scenario in dict.fromkeys(cell.scenario for cell in figure.cells):
        cells = [cell for cell in figure.cells if cell.scenario == scenario]
        title = f"{figure.execution.upper()}  the prefix manager against none  {scenario}".rstrip()
        console.print(title, style="bold")
        console.print(_gains(cells))
        console.print("What it copied", style="bold")
        console.print(_copies(cells))
    if figure.paper:
        console.print(f"The paper's statements (executed), and ours ({figure.execution})", style="bold")
        console.print(_paper(figure.paper))
    console.print(SAYS)
    for line in figure.left_out:
        console.print(f"left out: {line}")


def figure14_json(figure: Figure14) -> dict[str, Any]:
    """Return the figure as plain values: seconds, shares, bytes."""
    return {
        "execution": figure.execution,
        "cells": [_cell_json(cell) for cell in figure.cells],
        "paper": [
            {
                "scenario": each.scenario,
                "cache": each.cache,
                **each.statement._asdict(),
                **_effect_json(each.ours),
            }
            for each in figure.paper
        ],
        "left_out": figure.left_out,
    }


def gigabytes(size: float) -> str:
    """Return *size* [bytes] for a table."""
    return f"{size / 1e9:,.1f} GB"


def price(cell: Cell) -> str:
    """Return the bytes that a saved millisecond cost; "" where there is no manager."""
    if cell.bytes_per_saved_ms is not None:
        return f"{cell.bytes_per_saved_ms:,.0f}"
    return "" if cell.is_off else "none saved"


def _gains(cells: Sequence[Cell]) -> Grid:
    headings = ["requests/s", "", "runs"]
    for metric in SHOWN:
        headings += [metric.title, "against none", ""]
    rows = []
    for cell in cells:
        row = [_rate(cell), cell.cache, str(cell.runs)]
        for metric in SHOWN:
            effect = cell.effects[metric.name]
            row += [value_text(cell.means[metric.name], metric), effect_text(effect, metric)]
            row.append(_mark(effect, metric.lower_is_better))
        rows.append(row)
    return grid("", headings, rows)


def _copies(cells: Sequence[Cell]) -> Grid:
    rows = [
        [
            _rate(cell),
            cell.cache,
            gigabytes(cell.traffic.replicated_bytes),
            gigabytes(cell.traffic.fetched_bytes),
            f"{cell.traffic.reclaimed_blocks:,.0f}",
            price(cell),
        ]
        for cell in cells
    ]
    headings = ["requests/s", "", "replicas", "fetched", "reclaimed blocks", "bytes a saved ms"]
    return grid("", headings, rows)


def _paper(beside: Sequence[Beside]) -> Grid:
    rows = [
        [
            METRICS[each.statement.metric].title,
            f"{each.statement.rate:g}",
            " ".join((each.scenario, each.cache)).strip(),
            f"{100 * each.statement.change:+.1f} %",
            effect_text(each.ours, METRICS[each.statement.metric]),
        ]
        for each in beside
    ]
    return grid("", ["", "requests/s", "", "paper", "ours"], rows)


def _rate(cell: Cell) -> str:
    return "" if cell.rate is None else f"{cell.rate:g}"


def _mark(effect: Effect | None, lower_is_better: bool) -> str:
    if effect is None or not effect.decides:
        return ""
    return "better" if effect.is_lower == lower_is_better else "worse"


def _cell_json(cell: Cell) -> dict[str, Any]:
    return {
        "scenario": cell.scenario or None,
        "rate": cell.rate,
        "cache": cell.cache,
        "is_off": cell.is_off,
        "runs": cell.runs,
        **cell.means,
        "against_none": {name: _effect_json(effect) for name, effect in cell.effects.items() if effect},
        **cell.traffic._asdict(),
        "bytes_per_saved_ms": cell.bytes_per_saved_ms,
    }


def _effect_json(effect: Effect) -> dict[str, Any]:
    difference = effect.difference if effect.ratio is None else effect.ratio
    kind = "difference" if effect.ratio is None else "ratio"
    return {
        "pairs": effect.pairs,
        kind: difference.mean,
        f"{kind}_low": difference.low,
        f"{kind}_high": difference.high,
        "decides": effect.decides,
    }
