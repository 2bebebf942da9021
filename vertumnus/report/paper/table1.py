"""Table 1: what the three workloads are, by what a pool met of them."""

from collections.abc import Mapping
from typing import NamedTuple

from vertumnus.report.paper.chapter import Chapter, Claim, Runs, Unit, by, exactly, mean_of

EXPERIMENT = "workloads"
SAYS = (
    "Requests, lengths of prompts and answers, and the share of the prompts' tokens that an unlimited cache "
    "would reuse, of the workloads that everything else is measured on."
)
CAUSES = (
    "The generators are calibrated on this table, each seed by itself: the differences are the calibration's "
    "rest. Lengths of L-Eval are the same for every seed, since L-Eval is a fixed set of questions.",
)


class Row(NamedTuple):
    """A line of the table."""

    workload: str
    """As a run names it."""
    title: str
    stated: Mapping[str, float]
    """By column of the SQL."""


ROWS = (
    Row(
        "l_eval", "L-Eval",
        {"requests": 2_369, "input_mean": 13_728, "input_p99": 68_056, "output_mean": 42.76,
         "output_p99": 459, "reuse": 0.7961},
    ),
    Row(
        "tool_agent", "Tool-Agent",
        {"requests": 23_608, "input_mean": 8_596, "input_p99": 61_671, "output_mean": 182,
         "output_p99": 898, "reuse": 0.5856},
    ),
    Row(
        "production", "Production",
        {"requests": 22_446, "input_mean": 6_952, "input_p99": 81_724, "output_mean": 411,
         "output_p99": 4_227, "reuse": 0.2475},
    ),
)  # fmt: skip
COLUMNS: Mapping[str, tuple[str, Unit]] = {
    "requests": ("requests", "requests"),
    "input_mean": ("input, mean", "tokens"),
    "input_p99": ("input, P99", "tokens"),
    "output_mean": ("output, mean", "tokens"),
    "output_p99": ("output, P99", "tokens"),
    "reuse": ("reuse", "share"),
}


def chapter(runs: Runs) -> Chapter:
    """Return the chapter of Table 1."""
    found = by(runs.answer("table1", runs.of(EXPERIMENT)), "workload")
    claims = [
        Claim(
            f"{row.title}: {title}",
            unit,
            exactly(row.stated[column]),
            mean_of(each[column] for each in found.get(row.workload, ())),
        )
        for row in ROWS
        for column, (title, unit) in COLUMNS.items()
    ]
    return Chapter(SAYS, claims, (), (), CAUSES)
