"""Fig. 2: the speed-up of a prefill by CP against its length."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from vertumnus.report.compare.intervals import Difference
from vertumnus.report.paper.chapter import Chapter, Claim, Grid, Runs, at_most, by, exactly, mean_of
from vertumnus.report.paper.curves import curve
from vertumnus.report.paper.panels import Panel, Picture, Series
from vertumnus.report.paper.words import value_text

SIMULATED, EXECUTED = "prefill_times", "prefill_times_live"
SAYS = (
    "How much faster C GPUs prefill one prompt than one GPU without CP: nothing or a loss for short "
    "prompts, and 2.71x at C=4 and 3.91x at C=8 for 64K tokens (Qwen3-30B-A3B)."
)
CAUSES = (
    "Simulated: the preset was chosen so that these speed-ups come out, so they say that the simulator does "
    "what it was told, not how fast an H20 is. The noise of a prompt is the same at each degree, so ratios "
    "have none. At 4K tokens the preset gains more than the paper's curve, which is about 1 there.",
    "Executed: a small model of random weights on two processor cores, lengths at 1/16. Two ranks gain at "
    "most 2x while nothing else runs; beside other programs they have two shares of the machine where one "
    "rank has one. Short prompts lose to the exchange of keys and values as they do in the paper; the "
    "lengths where CP breaks even are this machine's.",
)
STATED = {4: 2.71, 8: 3.91}
"""Speed-up at 64K tokens by degree."""
LONGEST, SHORTEST = 65_536, 1_024

Speedups: TypeAlias = Mapping[tuple[int, int], Difference]
"""Mean over seeds by (degree, input tokens)."""


def chapter(runs: Runs) -> Chapter:
    """Return the chapter of Fig. 2."""
    rows = runs.answer("figure2", runs.of(SIMULATED, EXECUTED))
    found = {execution: speedups(of) for execution, of in by(rows, "execution").items()}
    simulated = found.get("simulated", {})
    claims = [
        Claim(f"C={degree} at 64K tokens", "x", exactly(stated), simulated.get((degree, LONGEST)))
        for degree, stated in STATED.items()
    ]
    claims.append(
        Claim("C=8 at 1K tokens: no gain", "x", at_most(1.0), simulated.get((8, SHORTEST))),
    )
    panels = [_panel(execution, of) for execution, of in sorted(found.items(), reverse=True) if of]
    pictures = [Picture("figure2", "Speed-up of a prefill over one GPU", panels)] if panels else []
    return Chapter(
        SAYS, claims, [_grid(execution, of) for execution, of in found.items() if of], pictures, CAUSES
    )


def speedups(rows: Sequence[Mapping[str, Any]]) -> Speedups:
    """Return E_1 / E_C of *rows*, seed by seed, averaged."""
    alone = {(row["seed"], row["input_tokens"]): row["prefill_s"] for row in rows if row["cp_degree"] == 1}
    ratios: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        base = alone.get((row["seed"], row["input_tokens"]))
        if row["cp_degree"] > 1 and base is not None:
            key = row["cp_degree"], row["input_tokens"]
            ratios.setdefault(key, []).append(base / row["prefill_s"])
    return {key: mean for key, values in ratios.items() if (mean := mean_of(values)) is not None}


def _panel(execution: str, found: Speedups) -> Panel:
    degrees = sorted({degree for degree, _ in found})
    series = [
        curve(f"C={degree}", {tokens: mean for (of, tokens), mean in found.items() if of == degree})
        for degree in degrees
    ]
    if execution == "simulated":
        series.append(Series("stated in the paper", [LONGEST] * 2, list(STATED.values()), "stated"))
    return Panel(
        execution.upper(),
        "input, nothing cached [tokens]",
        "speed-up over one GPU [x]",
        series,
        x_scale="tokens",
        from_zero=True,
    )


def _grid(execution: str, found: Speedups) -> Grid:
    degrees = sorted({degree for degree, _ in found})
    lengths = sorted({tokens for _, tokens in found})
    rows = [
        [f"{tokens:,}", *(value_text(found.get((degree, tokens)), "x") for degree in degrees)]
        for tokens in lengths
    ]
    return Grid(
        f"Speed-up by input tokens, {execution.upper()}",
        ("tokens", *(f"C={degree}" for degree in degrees)),
        rows,
    )
