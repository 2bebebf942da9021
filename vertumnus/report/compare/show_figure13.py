"""Fig. 13's table for people, and as plain values."""

from collections.abc import Mapping
from typing import Any

import msgspec
from rich.console import Console

from vertumnus.report.compare.figure13 import Beside, Figure13
from vertumnus.report.compare.moves import GroupMovement
from vertumnus.report.compare.pairing import Effect
from vertumnus.report.compare.show import ratio_text
from vertumnus.report.drawing import Grid, grid

SAYS = """\
Means are over every request that arrived in the phase. In brackets the 95% interval over paired seeds
(Student's t on the logarithms of ratios). A reversal is a split after a merge, or a merge after a split,
within one phase; the delay is from a change of phase to the first move in that phase."""


def print_figure13(figure: Figure13, console: Console) -> None:
    """Draw the figure's tables."""
    console.print(f"{figure.execution.upper()}  mean TTFT by phase", style="bold")
    console.print(_means(figure))
    console.print("Against the best fixed composition of each phase", style="bold")
    console.print(_against_best(figure))
    if figure.paper:
        console.print(f"The paper's statements (executed), and ours ({figure.execution})", style="bold")
        console.print(_paper(figure.paper))
    if figure.movements:
        console.print("Moves, and the first one after each change of phase: median (longest)", style="bold")
        console.print(movements_grid(figure.movements))
    console.print(SAYS)
    for line in figure.left_out:
        console.print(f"left out: {line}")


def figure13_json(figure: Figure13) -> dict[str, Any]:
    """Return the figure as plain values: seconds, shares."""
    return {
        "execution": figure.execution,
        "mean_ttft_s": _nested(figure.means),
        "against_best_fixed": _nested(
            {
                key: {"composition": best, **_effect(effect)}
                for key, (best, effect) in figure.against_best.items()
            }
        ),
        "paper": [
            {"group": each.group, **each.statement._asdict(), **_effect(each.ours)} for each in figure.paper
        ],
        "moves": [msgspec.to_builtins(each._asdict()) for each in figure.movements],
        "left_out": figure.left_out,
    }


def movements_grid(movements: list[GroupMovement]) -> Grid:
    """Return the table of moves, reversals and delays."""
    changes = len(movements[0].first_s)
    headings = ["group", "runs", "moves a run", "most reversals"]
    headings += [f"phase {number}" for number in range(2, 2 + changes)]
    rows = [
        [
            each.group,
            str(each.runs),
            f"{each.moves:.1f}",
            str(each.reversals),
            *(_delay(each, change) for change in range(changes)),
        ]
        for each in movements
    ]
    return grid("", headings, rows)


def _means(figure: Figure13) -> Grid:
    rows = []
    for group in (*figure.adaptive, *figure.fixed):
        means = [figure.means[group, stretch] for stretch in figure.stretches]
        rows.append([group, *("" if mean is None else f"{mean:.3f} s" for mean in means)])
    return grid("", ["", *figure.stretches], rows)


def _against_best(figure: Figure13) -> Grid:
    rows = [
        [group, stretch, *_against(figure, group, stretch)]
        for group in figure.adaptive
        for stretch in figure.stretches
    ]
    return grid("", ["", "", "best fixed composition", "difference", ""], rows)


def _against(figure: Figure13, group: str, stretch: str) -> tuple[str, str, str]:
    best, effect = figure.against_best[group, stretch]
    if effect is None:
        return (best, "", "")
    mark = "" if not effect.decides else "better" if effect.is_lower else "worse"
    return (best, ratio_text(effect), mark)


def _paper(beside: list[Beside]) -> Grid:
    rows = [
        [
            each.group,
            each.statement.stretch,
            each.statement.composition,
            f"{100 * each.statement.change:+.1f} %",
            ratio_text(each.ours),
        ]
        for each in beside
    ]
    return grid("", ["", "", "against", "paper", "ours"], rows)


def _delay(movement: GroupMovement, change: int) -> str:
    (middle, longest), still = movement.first_s[change], movement.still[change]
    none = f", {still} of {movement.runs} none" if still else ""
    if middle is None or longest is None:
        return "none"
    if movement.window_s is None:
        return f"{middle:.0f} ({longest:.0f}) s{none}"
    return f"{middle / movement.window_s:.1f} ({longest / movement.window_s:.1f}) windows{none}"


def _effect(effect: Effect | None) -> dict[str, Any]:
    ratio = None if effect is None else effect.ratio
    return {
        "pairs": effect.pairs if effect else 0,
        "ratio": ratio.mean if ratio else None,
        "ratio_low": ratio.low if ratio else None,
        "ratio_high": ratio.high if ratio else None,
    }


def _nested(values: Mapping[tuple[str, str], Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for (group, stretch), value in values.items():
        found.setdefault(group, {})[stretch] = value
    return found
