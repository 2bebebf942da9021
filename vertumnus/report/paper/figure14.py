"""Fig. 14: the prefix manager against none, over the rates."""

from collections.abc import Iterator, Sequence

from vertumnus.report.compare.figure14 import Cell, Figure14, figure14
from vertumnus.report.compare.members import Member, Members
from vertumnus.report.compare.metrics import METRICS, Metric
from vertumnus.report.compare.show import effect_text
from vertumnus.report.compare.show_figure14 import gigabytes, price
from vertumnus.report.paper.chapter import Chapter, Claim, Grid, Runs, exactly
from vertumnus.report.paper.curves import rate_curve
from vertumnus.report.paper.panels import Panel, Picture, Series

EXPERIMENT = "cache_ablation"
SAYS = (
    "Qwen3-30B-A3B on Tool-Agent with a fixed composition, with and without replication and reclamation: "
    "alike at low rates; at 60 requests/s the manager takes 10.3 % off the mean TTFT and 18.7 % off P90, "
    "with few more hits."
)
CAUSES = (
    "Ours routes with pulls (policy=vertumnus), which fetch what a request misses when it is placed: most "
    "of what replicas could save is saved before a scan comes. Under the published policy nothing is "
    "pulled.",
    "The published rule counts what a degree misses only where it would be preferred although it had to "
    "compute the prefix, so cache=paper finds little to copy to another degree; cache=vertumnus judges as if "
    "the best copy were everywhere, and copies while requests queue. The paper leaves its thresholds out.",
    "The composition is ours (the paper does not name its own), one that carries 60 requests/s; caches hold "
    "300K tokens a GPU.",
)
SHOWN = (
    ("mean_ttft", "mean TTFT [ms]", 1e3),
    ("p90_ttft", "P90 TTFT [ms]", 1e3),
    ("hit_rate", "prefix hits [%]", 100.0),
)


def chapter(runs: Runs) -> Chapter:
    """Return the chapter of Fig. 14."""
    members = runs.of(EXPERIMENT)
    if not members:
        return Chapter(SAYS, (), (), (), CAUSES)
    table = figure14(runs.runs_dir, Members(members, []))
    return Chapter(SAYS, list(_claims(table)), [_gains(table), _copies(table)], [_picture(members)], CAUSES)


def _claims(table: Figure14) -> Iterator[Claim]:
    for each in table.paper:
        metric = METRICS[each.statement.metric]
        what = (
            f"{each.scenario} {each.cache}: {metric.title} at {each.statement.rate:g} requests/s against none"
        )
        yield Claim(what, "change", exactly(each.statement.change), each.ours.ratio, table.execution)


def _gains(table: Figure14) -> Grid:
    metrics = [METRICS[name] for name, _, _ in SHOWN]
    rows = [(_name(cell), *(_effect(cell, metric) for metric in metrics)) for cell in _managed(table)]
    title = f"Against none, {table.execution.upper()}, with a 95 % interval over paired seeds"
    return Grid(title, ("", *(metric.title for metric in metrics)), rows)


def _copies(table: Figure14) -> Grid:
    rows = [
        (
            _name(cell),
            gigabytes(cell.traffic.replicated_bytes),
            gigabytes(cell.traffic.fetched_bytes),
            f"{cell.traffic.reclaimed_blocks:,.0f}",
            price(cell),
        )
        for cell in _managed(table)
    ]
    title = (
        f"What the manager copied in a run, {table.execution.upper()}, and the bytes beyond those without "
        "one for each ms of TTFT that it saved, all requests together"
    )
    return Grid(title, ("", "replicas", "fetched on demand", "reclaimed blocks", "bytes a saved ms"), rows)


def _managed(table: Figure14) -> list[Cell]:
    return [cell for cell in table.cells if not cell.is_off and cell.rate is not None]


def _name(cell: Cell) -> str:
    return f"{cell.scenario} {cell.cache}, {cell.rate:g} requests/s".lstrip()


def _effect(cell: Cell, metric: Metric) -> str:
    effect = cell.effects[metric.name]
    return "" if effect is None else effect_text(effect, metric)


def _picture(members: Sequence[Member]) -> Picture:
    panels = []
    for name, y_label, scale in SHOWN:
        panels.append(
            Panel(
                "", "request rate [requests/s]", y_label, list(_series(members, name, scale)), from_zero=True
            )
        )
    return Picture("figure14", "With and without the prefix manager, over seeds with 95 % intervals", panels)


def _series(members: Sequence[Member], metric: str, scale: float) -> Iterator[Series]:
    settings: dict[str, list[Member]] = {}
    for run in members:
        label = (
            f"{run.words.get('policy', run.row['policy'])}, cache {run.words.get('cache', 'as configured')}"
        )
        settings.setdefault(label, []).append(run)
    for label, of_setting in settings.items():
        yield rate_curve(label, of_setting, METRICS[metric], scale)
