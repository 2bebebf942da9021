"""Figs. 7-12 as tables for people, and as plain values."""

from typing import Any

from rich.console import Console

from vertumnus.report.compare.grid import BOUND, JUDGED, MEAN, OURS, Beside, Margin, RoutingGrid
from vertumnus.report.compare.metrics import METRICS, Metric
from vertumnus.report.compare.pairing import Effect
from vertumnus.report.compare.show import effect_text, plain_effect, value_text
from vertumnus.report.drawing import Grid, grid

OPEN = "Open loop: requests arrive when the trace says, whatever waits."
CLOSED = "Closed loop: a session's next turn comes with the answer before it, all else when the trace says."
SAYS = """\
Means over seeds that nothing was tuned on.
* a lower mean TTFT than each other policy. Differences are paired by seed and arrivals, with a 95% interval
(Student's t; of times as ratios): better, worse where it leaves zero out. paper_tuned and static_tuned were
tuned for each cell and rate on other seeds (conf/cell/tuned), vertumnus was not; the three share a pool. The
bound is each request alone at its best degree, with an unlimited shared cache. Long: 32K tokens or more."""


def print_grid(found: RoutingGrid, console: Console) -> None:
    """Draw every table of the grid."""
    for cell in dict.fromkeys(cell for cell, _ in found.places):
        console.print(f"{found.execution.upper()}  {cell}  mean TTFT by requests/s", style="bold")
        console.print(_means(found, cell))
    if found.margins:
        console.print(f"{OURS} against the published policy, then the best of the others", style="bold")
        console.print(_margins(found))
    if found.gains:
        console.print("Gains over the strongest baseline: the paper's, and paper_tuned's here", style="bold")
        console.print(_gains(found))
    console.print(CLOSED if found.is_closed_loop else OPEN)
    console.print(SAYS)
    for line in found.left_out:
        console.print(f"left out: {line}")


def grid_json(found: RoutingGrid) -> dict[str, Any]:
    """Return the grid as plain values: seconds, shares."""
    return {
        "execution": found.execution,
        "is_closed_loop": found.is_closed_loop,
        "values": [
            {
                "cell": cell,
                "level": level,
                "requests_per_s": found.rates[cell, level],
                "policy": policy,
                "metric": metric,
                "value": value,
            }
            for (cell, level, policy, metric), value in found.values.items()
        ],
        "margins": [
            {
                **{key: value for key, value in each._asdict().items() if key != "effects"},
                "metric": metric,
                **plain_effect(effect),
            }
            for each in found.margins
            for metric, effect in each.effects.items()
        ],
        "gains": [
            {
                **each.gain._asdict(),
                "against": each.against,
                **plain_effect(each.ours),
                "parts": {name: effect and effect.difference.mean for name, effect in each.parts.items()},
            }
            for each in found.gains
        ],
        "left_out": found.left_out,
    }


def _means(found: RoutingGrid, cell: str) -> Grid:
    places = [place for place in found.places if place[0] == cell]
    rows = [[policy, *(_mean(found, place, policy) for place in places)] for policy in found.policies]
    rows.append(["as multiples of the bound", *([""] * len(places))])
    rows.append([f"  {OURS}", *(value_text(_value(found, place, OURS, BOUND), BOUND) for place in places)])
    return grid("", ["", *(f"{found.rates[place]:.4g}" for place in places)], rows)


def _mean(found: RoutingGrid, place: tuple[str, str], policy: str) -> str:
    value = _value(found, place, policy, MEAN)
    star = " *" if found.best[place] == policy else ""
    return "" if value is None else f"{value_text(value, MEAN)}{star}"


def _value(found: RoutingGrid, place: tuple[str, str], policy: str, metric: Metric) -> float | None:
    return found.values.get((*place, policy, metric.name))


def _margins(found: RoutingGrid) -> Grid:
    headings = ["", "requests/s", "against"]
    for metric in JUDGED:
        headings += [metric.title, ""]
    return grid("", headings, [_margin(found, each) for each in found.margins])


def _margin(found: RoutingGrid, margin: Margin) -> list[str]:
    row = [margin.cell, f"{found.rates[margin.cell, margin.level]:.4g}", margin.against]
    for metric in JUDGED:
        effect = margin.effects[metric.name]
        row += ["", ""] if effect is None else [effect_text(effect, metric), _mark(effect, metric)]
    return row


def _gains(found: RoutingGrid) -> Grid:
    headings = ["", "", "paper", "here", "", "against", "out of"]
    return grid("", headings, [_gain(each) for each in found.gains])


def _gain(beside: Beside) -> list[str]:
    gain, ours = beside.gain, beside.ours
    metric = METRICS[gain.metric]
    unit = "pts" if metric.unit == "share" else "%"
    told = ["", ""] if ours is None else [effect_text(ours, metric), _mark(ours, metric)]
    stated = f"{100 * gain.change:+.1f} {unit}"
    return [gain.cell, metric.title, stated, *told, beside.against, _parts(beside)]


def _parts(beside: Beside) -> str:
    """Return the mean differences that a gain in mean TTFT is made of, without their intervals."""
    told = []
    for name, effect in beside.parts.items():
        if effect is not None:
            mean, is_share = effect.difference.mean, METRICS[name].unit == "share"
            told.append(
                f"{METRICS[name].title} {100 * mean:+.1f} pts" if is_share else f"{name} {mean:+.3f} s"
            )
    return ", ".join(told)


def _mark(effect: Effect, metric: Metric) -> str:
    if not effect.decides:
        return ""
    return "better" if effect.is_lower == metric.lower_is_better else "worse"
