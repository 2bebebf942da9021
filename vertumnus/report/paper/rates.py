"""Figs. 7-9 and 10-12: mean TTFT, P90 TTFT and attainment over the rates, method by method."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from vertumnus.report.compare.grid import PUBLISHED, RoutingGrid, routing_grid
from vertumnus.report.compare.members import Member, Members
from vertumnus.report.compare.metrics import METRICS
from vertumnus.report.compare.show import effect_text
from vertumnus.report.paper.chapter import Chapter, Claim, Grid, Runs, Unit, exactly
from vertumnus.report.paper.curves import rate_curve, rate_of
from vertumnus.report.paper.panels import Panel, Picture, Scale, Series

EXPERIMENT = "routing_grid"
METHODS: Mapping[str, str] = {
    "vertumnus": "ours, improved",
    "paper_tuned": "ours, as published",
    "homo": "Homo",
    "static_tuned": "Static",
    "vllm_dp": "vLLM",
    "sglang_cache_aware": "SGLang",
}
"""The paper's methods by the policy that stands for each here."""
LEVELS = ("lowest", "middle", "highest")
"""Of the five rates of the paper's axes those that are run, each with its own tuning (conf/cell/tuned)."""
WORKLOADS: Mapping[str, str] = {"l_eval": "L-Eval", "tool_agent": "Tool-Agent", "production": "Production"}
MEASURES: Sequence[tuple[str, str, float, Scale]] = (
    ("mean_ttft", "mean TTFT [ms]", 1e3, "log"),
    ("p90_ttft", "P90 TTFT [ms]", 1e3, "log"),
    ("attainment", "SLO attainment [%]", 100.0, "linear"),
)
"""Metric, axis, factor from the runs table to the axis, and its scale, of one figure each."""
CAUSES = (
    "The methods are policies on our cost model, not those systems; they share pool, caches and prefill "
    "times, so only placement differs. Static and the published policy have parameters tuned for each cell "
    "on other seeds.",
    "Saturation rates follow from the presets, which were chosen for them; each run is a slice of its "
    "workload, so queues that grow without end have less time to grow.",
    "Three of the paper's five rates are run; lines only lead the eye from one to the next.",
    "Near saturation seeds differ by 20 to 50 %: the intervals say what can be told apart.",
)


class Model(NamedTuple):
    """A model and its three figures."""

    key: str
    """What its cells begin with."""
    title: str
    figures: str
    """Name of the chapter."""
    says: str

    @property
    def first(self) -> int:
        """The number of the first of its figures."""
        return int(self.figures.removeprefix("figures").partition("-")[0])

    @property
    def heading(self) -> str:
        """Its figures, as the paper calls them."""
        return self.figures.replace("figures", "Figs. ")

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of the grid that are its own."""
        return tuple(f"{self.key}_{workload}" for workload in WORKLOADS)


DEEPSEEK = Model(
    "deepseek",
    "DeepSeek-V4-Flash-FP8",
    "figures7-9",
    "At the highest rates Vertumnus takes 27.4, 3.9 and 1.1 % off the strongest baseline's mean TTFT on "
    "L-Eval, Tool-Agent and Production, 24.6 and 4.3 % off P90 on the first two, and attains 8.9, 1.4 and "
    "3.1 points more.",
)
QWEN = Model(
    "qwen",
    "Qwen3-30B-A3B",
    "figures10-12",
    "At the highest rates Vertumnus takes 13.9, 21.0 and 28.1 % off the strongest baseline's mean TTFT on "
    "L-Eval, Tool-Agent and Production, 17.8, 55.0 and 29.5 % off P90, and attains 0.9, 13.3 and 1.1 points "
    "more.",
)


def chapter_of(model: Model) -> Callable[[Runs], Chapter]:
    """Return what makes the chapter of *model*."""

    def chapter(runs: Runs) -> Chapter:
        members = [run for run in runs.of(EXPERIMENT) if run.words["cell"].startswith(model.key)]
        if not members:
            return Chapter(model.says, (), (), (), CAUSES)
        table = routing_grid(runs.runs_dir, Members(members, []))
        pictures = [_picture(model, number, members) for number in range(len(MEASURES))]
        return Chapter(model.says, list(_claims(table)), [_margins(table, members)], pictures, CAUSES)

    return chapter


def _claims(table: RoutingGrid) -> Iterator[Claim]:
    for each in table.gains:
        metric = METRICS[each.gain.metric]
        unit: Unit = "change" if metric.by_ratio else "points"
        methods = f"{METHODS[PUBLISHED]} against {METHODS[each.against]}"
        what = f"{_workload(each.gain.cell)}: {metric.title}, {methods}"
        ours = each.ours and (each.ours.ratio if metric.by_ratio else each.ours.difference)
        yield Claim(what, unit, exactly(each.gain.change), ours, table.execution)


def _margins(table: RoutingGrid, members: Sequence[Member]) -> Grid:
    rates = {(run.words["cell"], run.words["grid.level"]): rate_of(run) for run in members}
    metrics = [METRICS[name] for name, *_ in MEASURES]
    rows = []
    for margin in table.margins:
        effects = (margin.effects[metric.name] for metric in metrics)
        told = (
            "" if effect is None else effect_text(effect, metric)
            for effect, metric in zip(effects, metrics, strict=True)
        )
        rate = rates[margin.cell, margin.level]
        rows.append(
            (
                f"{_workload(margin.cell)}, {rate:.4g} requests/s",
                METHODS.get(margin.against, margin.against),
                *told,
            )
        )
    title = (
        f"{METHODS['vertumnus'].capitalize()}: against the published policy and the strongest other method, "
        f"{table.execution.upper()}, with a 95 % interval over paired seeds"
    )
    return Grid(title, ("", "against", *(metric.title for metric in metrics)), rows)


def _picture(model: Model, number: int, members: Sequence[Member]) -> Picture:
    metric, y_label, factor, scale = MEASURES[number]
    panels = []
    for cell, of_cell in _by_word(members, "cell").items():
        by_policy = _by_word(of_cell, "policy")
        curves = [
            rate_curve(title, by_policy[policy], METRICS[metric], factor)
            for policy, title in METHODS.items()
            if policy in by_policy
        ]
        panels.append(_panel(_workload(cell), y_label, scale, curves))
    name = model.first + number
    return Picture(f"figure{name}", f"Fig. {name}: {METRICS[metric].title}, {model.title}", panels)


def _panel(title: str, y_label: str, scale: Scale, curves: Sequence[Series]) -> Panel:
    """Return the panel of one workload: over the rates, or where there is one, method by method."""
    rates = {rate for each in curves for rate in each.x}
    if len(rates) > 1:
        return Panel(title, "request rate [requests/s]", y_label, curves, y_scale=scale)
    beside = [each._replace(x=[place], look="points") for place, each in enumerate(curves)]
    at = "".join(f", {rate:.4g} requests/s" for rate in rates)
    names = [(place, each.label) for place, each in enumerate(curves)]
    return Panel(f"{title}{at}", "", y_label, beside, x_ticks=names, from_zero=True)


def _by_word(runs: Iterable[Member], key: str) -> dict[str, list[Member]]:
    found: dict[str, list[Member]] = {}
    for run in runs:
        found.setdefault(run.words[key], []).append(run)
    return found


def _workload(cell: str) -> str:
    return WORKLOADS.get(cell.partition("_")[2], cell)
