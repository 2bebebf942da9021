"""The order of groups as simulated and as executed: for people, and as plain values."""

from typing import Any

from rich.console import Console

from vertumnus.report.compare.pairing import Effect
from vertumnus.report.compare.ranking import EXECUTIONS, Order, Place, Ranking
from vertumnus.report.compare.show import effect_text, plain_effect, value_text
from vertumnus.report.drawing import Grid, grid

SAYS = """\
Means over seeds. Differences are of the first named against the second, paired by seed in either execution,
with a 95% interval (Student's t; of times on the logarithms of ratios). A simulated rank has a device of its
own; ranks that compute here share the cores with decoding and routing."""


def print_ranking(found: Ranking, console: Console) -> None:
    """Draw the orders by each metric."""
    for order in found.orders:
        console.print(f"{order.metric.title}, simulated beside EXECUTED", style="bold")
        console.print(_places(order))
        console.print(_pairs(order))
    console.print(SAYS)
    for line in found.left_out:
        console.print(f"left out: {line}")


def ranking_json(found: Ranking) -> dict[str, Any]:
    """Return the orders as plain values: seconds, ratios."""
    return {
        "orders": [
            {
                "metric": order.metric.name,
                "places": [place._asdict() for place in order.places],
                "pairs": [
                    {
                        "better": pair.better,
                        "other": pair.other,
                        "simulated": plain_effect(pair.simulated),
                        "executed": plain_effect(pair.executed),
                        "verdict": pair.verdict,
                    }
                    for pair in order.pairs
                ],
            }
            for order in found.orders
        ],
        "left_out": found.left_out,
    }


def _places(order: Order) -> Grid:
    headings = [""]
    for kind in EXECUTIONS:
        headings += [kind, "rank", "seeds"]
    return grid("", headings, [_row(place, order) for place in order.places])


def _row(place: Place, order: Order) -> list[str]:
    row = [place.group]
    for kind in EXECUTIONS:
        rank = place.ranks[kind]
        row += [value_text(place.values[kind], order.metric), "" if rank is None else str(rank)]
        row.append(str(place.seeds[kind]))
    return row


def _pairs(order: Order) -> Grid:
    def told(effect: Effect) -> str:
        return effect_text(effect, order.metric)

    rows = [
        [f"{pair.other} against {pair.better}", told(pair.simulated), told(pair.executed), pair.verdict]
        for pair in order.pairs
    ]
    return grid("", ["", *EXECUTIONS, ""], rows)
