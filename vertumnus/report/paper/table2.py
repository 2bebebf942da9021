"""Table 2: the TTFT targets, and how much of each workload could meet them at all."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vertumnus.report.compare.intervals import Difference
from vertumnus.report.paper import table1
from vertumnus.report.paper.chapter import Chapter, Claim, Grid, Runs, by, exactly, mean_of
from vertumnus.report.paper.words import value_text

EXPERIMENT = "deadlines"
SAYS = (
    "The TTFT that counts as met, by model and input length; attainment in Figs. 9 and 12 is against these."
)
CAUSES = (
    "Attainable is what an idle pool would attain at its best degree with an unlimited cache that all "
    "workers share, by the preset's prefill times: no policy gets above it. Where it is below 100 %, "
    "the prefill of the longest prompts of a range takes longer than its target at the largest degree.",
    "The presets were chosen, not measured; a faster H20 than theirs would lift the ceiling.",
)
TARGETS: Mapping[str, tuple[str, tuple[float, float, float]]] = {
    "deepseek_v4_flash": ("DeepSeek-V4-Flash-FP8", (0.5, 2.0, 5.0)),
    "qwen3_30b_a3b": ("Qwen3-30B-A3B", (1.0, 5.0, 10.0)),
}
"""Title and targets by model, for prompts below 8K, below 32K and above [s]."""
WORKLOADS = {row.workload: row.title for row in table1.ROWS}
BUCKETS = ("below 8K", "8-32K", "32K and more")

Rows = Sequence[Mapping[str, Any]]


def chapter(runs: Runs) -> Chapter:
    """Return the chapter of Table 2."""
    rows = runs.answer("table2", runs.of(EXPERIMENT))
    models = by(rows, "model")
    claims = [claim for model in TARGETS for claim in _claims(model, models.get(model, ()))]
    return Chapter(SAYS, claims, [_grid(rows)] if rows else [], (), CAUSES)


def _claims(model: str, rows: Rows) -> Iterator[Claim]:
    title, stated = TARGETS[model]
    buckets = _in_order(rows)
    for place, (name, target_s) in enumerate(zip(BUCKETS, stated, strict=True)):
        ours = buckets[place] if place < len(buckets) else ()
        targets = {row["target_s"] for row in ours}
        found = Difference(targets.pop(), None, None) if len(targets) == 1 else None
        yield Claim(f"{title}: {name}", "s", exactly(target_s), found)


def _in_order(rows: Rows) -> list[Rows]:
    """Return *rows* by length bucket, the shortest first."""
    of_bucket = by(rows, "length_bucket").values()
    return sorted(of_bucket, key=lambda found: min(row["shortest"] for row in found))


def _grid(rows: Rows) -> Grid:
    lines = []
    for (model, workload), found in by(rows, "model", "workload").items():
        for name, of_bucket in zip(BUCKETS, _in_order(found), strict=False):
            shares = (mean_of(row[column] for row in of_bucket) for column in ("attainable", "attained"))
            told = (value_text(share, "share") for share in shares)
            title = f"{TARGETS.get(model, (model,))[0]}, {WORKLOADS.get(workload, workload)}"
            lines.append((title, name, *told))
    return Grid(
        "Share of the tokens within target, SIMULATED, at each workload's own rate",
        ("", "input length", "attainable", "attained"),
        lines,
    )
