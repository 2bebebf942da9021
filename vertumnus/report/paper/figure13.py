"""Fig. 13: the composition follows the load, against compositions that stay."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from vertumnus.report.compare.figure13 import Figure13, figure13
from vertumnus.report.compare.members import Member, Members
from vertumnus.report.compare.show import ratio_text
from vertumnus.report.paper.chapter import Chapter, Claim, Grid, Runs, at_most, by, exactly, mean_of
from vertumnus.report.paper.panels import Bars, Panel, Picture, Series
from vertumnus.report.timeline import OUT_OF_SERVICE, Timeline, load_timeline

EXPERIMENT = "reconfigure"
SAYS = (
    "DeepSeek-V4-Flash on 40 GPUs through five phases: moderate, many short requests (minutes 6 to 17), "
    "moderate, few long ones (22 to 33), moderate. Vertumnus starts from 4CP4/3CP8 and moves to 8CP4/1CP8 "
    "and to 2CP4/4CP8; it matches or beats the better fixed composition in each phase. Drains take 0.5 to "
    "4.2 s, switches less than 1 s."
)
CAUSES = (
    "Rates and mixes of the phases are not in the paper; ours were chosen so that no fixed composition is "
    "best throughout. How much a composition loses in a phase depends on them.",
    "A drain lasts as long as the prefill under way and its hand-off, so it follows the preset's prefill "
    "times; the simulator takes a fixed time for a switch, whose true length only the executed runs of "
    "reconfigure_live measure.",
)
FIXED = ("4 x CP4 + 3 x CP8", "6 x CP4 + 2 x CP8")
"""The compositions that the paper draws."""
DRAIN_S, SWITCH_S, TOTAL_S = (0.5, 4.2), 1.0, (1.1, 5.1)
MOST_MOVES = 12
"""Bars that the breakdown has room for."""
Rows = Sequence[Mapping[str, Any]]


def chapter(runs: Runs) -> Chapter:
    """Return the chapter of Fig. 13."""
    members = runs.of(EXPERIMENT)
    adaptive = [run for run in members if run.row["controller"] != "off"]
    moves = runs.answer("figure13_moves", adaptive)
    claims = [*_stages(moves)]
    grids: list[Grid] = []
    if adaptive and len(adaptive) < len(members):
        table = figure13(runs.runs_dir, Members(members, []))
        claims = [*_statements(table), *claims]
        grids = [_means(table), _against_best(table)]
    pictures = [_picture(runs, members, adaptive, moves)] if adaptive else []
    return Chapter(SAYS, claims, grids, pictures, CAUSES)


def _statements(table: Figure13) -> Iterator[Claim]:
    for each in table.paper:
        what = f"{each.group}: mean TTFT of {each.statement.stretch} against {each.statement.composition}"
        ours = None if each.ours is None else each.ours.ratio
        yield Claim(what, "change", exactly(each.statement.change), ours, table.execution)


def _stages(moves: Rows) -> Iterator[Claim]:
    of_runs = by(moves, "run_id").values()

    def middle(column: str) -> list[float]:
        return [median(move[column] for move in of_run) for of_run in of_runs]

    yield Claim("drain, median of a run's moves", "s", DRAIN_S, mean_of(middle("drain_s")))
    longest = mean_of(max(move["switch_s"] for move in of_run) for of_run in of_runs)
    yield Claim("switch, longest of a run", "s", at_most(SWITCH_S), longest)
    yield Claim("drain and switch, median of a run's moves", "s", TOTAL_S, mean_of(middle("total_s")))


def _means(table: Figure13) -> Grid:
    rows = []
    for group in (*table.adaptive, *table.fixed):
        means = (table.means[group, stretch] for stretch in table.stretches)
        rows.append([group, *("" if mean is None else f"{mean:.3f} s" for mean in means)])
    return Grid(f"Mean TTFT by phase, {table.execution.upper()}", ("", *table.stretches), rows)


def _against_best(table: Figure13) -> Grid:
    rows = []
    for group in table.adaptive:
        for stretch in table.stretches:
            best, effect = table.against_best[group, stretch]
            rows.append([f"{group}, {stretch}", best, "" if effect is None else ratio_text(effect)])
    return Grid(
        "Against the best fixed composition of each phase, chosen in hindsight",
        ("", "best fixed", "difference (95 %)"),
        rows,
    )


def _picture(runs: Runs, members: Sequence[Member], adaptive: Sequence[Member], moves: Rows) -> Picture:
    shown = min(adaptive, key=lambda run: run.seed)
    timeline = load_timeline(runs.runs_dir, shown.run_id)
    panels = [*_adaptation(timeline), _ttft(runs, members, timeline)]
    if of_run := [move for move in moves if move["run_id"] == shown.run_id]:
        panels.append(_breakdown(of_run[:MOST_MOVES]))
    caption = f"Load adaptation, controller {_group(shown)}, seed {shown.seed}; TTFT over all seeds"
    return Picture("figure13", caption, panels, columns=2)


def _adaptation(timeline: Timeline) -> Iterator[Panel]:
    minutes = [t_s / 60 for t_s in timeline.t_s.tolist()]
    yield Panel(
        "(a) composition",
        "time [min]",
        "prefill GPUs",
        [Series(_degree(band.degree), minutes, band.ranks.tolist(), "area") for band in timeline.bands],
        marks=_phases(timeline),
        from_zero=True,
    )
    edges = [t_s / 60 for t_s in timeline.bins.edges_s.tolist()]
    rate = [*timeline.bins.rate.tolist(), timeline.bins.rate.tolist()[-1]]
    yield Panel(
        "(a) request rate",
        "time [min]",
        "arrivals [requests/s]",
        [Series("arrivals", edges, rate, "step")],
        marks=_phases(timeline),
        from_zero=True,
    )


def _degree(degree: int) -> str:
    return "out of service" if degree == OUT_OF_SERVICE else f"CP{degree}"


def _phases(timeline: Timeline) -> list[float]:
    return [end_s / 60 for end_s in timeline.phases_s]


def _ttft(runs: Runs, members: Sequence[Member], timeline: Timeline) -> Panel:
    group_of = {run.run_id: _group(run) for run in members}
    wanted = [
        *dict.fromkeys(group for group in group_of.values() if group not in FIXED and " x " not in group),
        *FIXED,
    ]
    minutes: dict[tuple[str, int], list[float]] = {}
    for row in runs.answer("figure13", members):
        minutes.setdefault((group_of[row["run_id"]], row["minute"]), []).append(row["ttft_s"])
    series = []
    for group in wanted:
        x = sorted(minute for of, minute in minutes if of == group)
        means = [sum(values) / len(values) for values in (minutes[group, minute] for minute in x)]
        if x:
            series.append(Series(group, x, means, "line"))
    return Panel(
        "(b) mean TTFT of each minute's arrivals",
        "time [min]",
        "mean TTFT [s]",
        series,
        y_scale="log",
        marks=_phases(timeline),
    )


def _group(run: Member) -> str:
    """Return the composition of a run that keeps it, else its controller as it was chosen."""
    off = run.row["controller"] == "off"
    return str(run.row["composition"] if off else run.words.get("controller", run.row["controller"]))


def _breakdown(moves: Rows) -> Panel:
    return Panel(
        "(c) latency of each move",
        "time [s]",
        "",
        bars=Bars(
            [f"S{move['place']} {move['kind']}" for move in moves],
            [(stage, [move[f"{stage}_s"] for move in moves]) for stage in ("drain", "switch")],
        ),
    )
