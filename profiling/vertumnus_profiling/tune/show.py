"""A search's results as text on stdout."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from vertumnus.commandline.columns import in_columns
from vertumnus.domain.wording import counted
from vertumnus_profiling.tune.judge import Judgement
from vertumnus_profiling.tune.objectives import Objective
from vertumnus_profiling.tune.search import UNTUNED, Found
from vertumnus_profiling.tune.slices import Slice
from vertumnus_profiling.tune.writing import interval_words, verdict_words

FEW_SLICES = 3
"""Held-out slices below which the interval knows little of how slices differ."""


def show_found(
    found: Found,
    values: Mapping[str, float],
    untuned: Mapping[str, float],
    objective: Objective,
    slices: int,
) -> None:
    """Print the winner of the training slices, with the values that it changes."""
    sign = 1.0 if objective.least else -1.0
    if found.trial == UNTUNED:
        print(
            f"no trial beat the untuned config on the {counted(slices, 'training slice')} "
            f"({objective.show(sign * found.untuned_cost)}); nothing is written"
        )
        return
    rows = [("key", "untuned", "tuned")]
    rows += [(key, f"{untuned[key]:g}", f"{value:g}") for key, value in values.items()]
    print(in_columns(rows))
    print(
        f"training: {objective.show(sign * found.untuned_cost)} untuned, "
        f"{objective.show(sign * found.cost)} tuned, mean over {counted(slices, 'slice')} (best of "
        f"many, so too good)"
    )


def show_judgement(judgement: Judgement, slices: Sequence[Slice], objective: Objective) -> None:
    """Print the held-out result slice by slice, the interval and the verdict."""
    rows = [("held-out slice", "untuned", "tuned")]
    rows += [
        (str(part), objective.show(untuned), objective.show(tuned))
        for part, (untuned, tuned) in zip(slices, judgement.by_slice, strict=True)
    ]
    rows.append(("mean", objective.show(judgement.untuned), objective.show(judgement.tuned)))
    print(in_columns(rows))
    print(f"change {interval_words(judgement, objective)} (95 % interval)")
    print(f"verdict: {verdict_words(judgement)}")
    if len(slices) < FEW_SLICES:
        print(f"note: {len(slices)} held-out slices say little of others; judge on {FEW_SLICES} or more")


def show_use(out: Path, group: str) -> None:
    """Print where the config is and how a run takes it."""
    print(f"config {out}")
    if out.parent == Path("conf", group):
        print(f"try: vertumnus ... {group}={out.stem}")
    else:
        print(f"to use it as {group}={out.stem}, put it into conf/{group}/ of the folder you work in")
