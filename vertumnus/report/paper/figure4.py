"""Fig. 4: how well the cache-aware prefill-time model predicts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vertumnus.report.paper.chapter import Chapter, Claim, Grid, Runs, at_most, by, mean_of
from vertumnus.report.paper.panels import Panel, Picture, Series

SIMULATED, EXECUTED = "prefill_times", "prefill_times_live"
SAYS = (
    "Predicted against measured prefill times over degrees, lengths and cached shares; the error's "
    "distribution ends at 25 %, where the figure's axis does."
)
CAUSES = (
    "Simulated: a prefill takes what the model predicts, times seeded lognormal noise, so this shows that "
    "noise and nothing else; a prompt has the same noise at each degree, and the lines lie on one another.",
    "Executed: the model is fitted on six sizes when the run starts, and judged on all others; other "
    "programs on the machine make single prefills slower than any model of the prompt can know.",
)
AXIS_END = 0.25
SHARES = (0.5, 0.9, 0.99)
MOST_POINTS = 120
"""Of each degree in the scatter, evenly taken."""
Rows = Sequence[Mapping[str, Any]]


def chapter(runs: Runs) -> Chapter:
    """Return the chapter of Fig. 4."""
    rows = runs.answer("figure4", runs.of(SIMULATED, EXECUTED))
    kinds = dict(sorted(by(rows, "execution").items(), reverse=True))
    claims = [
        Claim(
            f"P90 of the error at C={degree}",
            "share",
            at_most(AXIS_END),
            mean_of(float(np.quantile(_errors(of_seed), 0.9)) for of_seed in by(of_degree, "seed").values()),
            kind,
        )
        for kind, of in kinds.items()
        for degree, of_degree in by(of, "cp_degree").items()
    ]
    grids = [_grid(kinds)] if rows else []
    panels = [panel for kind, of in kinds.items() for panel in _panels(kind, of)]
    pictures = [Picture("figure4", "Accuracy of the prefill-time model", panels, columns=2)] if rows else []
    return Chapter(SAYS, claims, grids, pictures, CAUSES)


def _errors(rows: Rows) -> list[float]:
    return sorted(row["error"] for row in rows)


def _panels(kind: str, rows: Rows) -> Iterator[Panel]:
    degrees = by(rows, "cp_degree")
    yield Panel(
        f"{kind.upper()}: predicted and measured",
        "measured prefill [s]",
        "predicted prefill [s]",
        [_scatter(f"C={degree}", of) for degree, of in degrees.items()],
        x_scale="log",
        y_scale="log",
        diagonal=True,
    )
    yield Panel(
        f"{kind.upper()}: errors",
        "absolute error of the prediction [%]",
        "share of the prompts",
        [_distribution(f"C={degree}", of) for degree, of in degrees.items()],
        from_zero=True,
    )


def _scatter(label: str, rows: Rows) -> Series:
    some = rows[:: max(1, len(rows) // MOST_POINTS)]
    return Series(label, [row["measured_s"] for row in some], [row["predicted_s"] for row in some], "points")


def _distribution(label: str, rows: Rows) -> Series:
    errors = _errors(rows)
    shares = [(place + 1) / len(errors) for place in range(len(errors))]
    return Series(label, [100 * error for error in errors], shares, "step")


def _grid(kinds: Mapping[str, Rows]) -> Grid:
    lines = []
    for kind, rows in kinds.items():
        for degree, of_degree in by(rows, "cp_degree").items():
            errors = np.array(_errors(of_degree))
            told = [f"{100 * float(np.quantile(errors, share)):.1f} %" for share in SHARES]
            lines.append(
                [f"{kind.upper()}, C={degree}", f"{len(errors):,}", f"{100 * errors.mean():.1f} %", *told]
            )
    return Grid("Absolute error of the prediction", ("", "prompts", "mean", "P50", "P90", "P99"), lines)
