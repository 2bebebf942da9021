"""The search: points of a Sobol sequence, halved on more and more training slices.

Every point is tried on the first slice; the better half goes on to two, the better half of those to four,
and so on up to all slices: each rung costs about as much as the first. The untuned config takes part in
every rung, so that what wins has beaten it on all of the training slices.
"""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, log2
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.stats import qmc

from vertumnus.domain.errors import ConfigError
from vertumnus_profiling.tune.spaces import Parameter

UNTUNED = 0
"""The number of the trial that leaves the config as it is."""
REACHING = 16
"""Points that are tried with a key at an end of its range."""
LAST = float(np.nextafter(1.0, 0.0))
"""The end of the unit range, which belongs to no value."""
DRAWN_PER_TRIAL = 16
"""Points drawn for one trial at most; the config may refuse some, and whole numbers may repeat."""

Values: TypeAlias = Mapping[str, float]
"""A point, by dotted key."""
Pair: TypeAlias = tuple[int, int]
"""A trial and a training slice, by number."""


class Rung(NamedTuple):
    """One stage of the search."""

    trials: int
    """That take part, the untuned one aside."""
    slices: int
    """Training slices that they have been tried on at its end."""


class Found(NamedTuple):
    """What the search found."""

    trial: int
    cost: float
    """Its mean over all training slices."""
    untuned_cost: float


def points(
    parameters: Sequence[Parameter], trials: int, seed: int, refusal: Callable[[Values], str | None]
) -> list[Values]:
    """Return *trials* different points that the config takes, the untuned one first.

    *refusal* says why the config does not take a point. Raises ConfigError when too few are left.
    """
    untuned = {each.range.key: each.untuned for each in parameters}
    found: list[Values] = [untuned]
    refused: str | None = None
    drawn = 2 ** ceil(log2(max(2, DRAWN_PER_TRIAL * trials)))
    sequence = qmc.Sobol(len(parameters), scramble=True, rng=np.random.default_rng(seed))
    for row in sequence.random(drawn):
        if len(found) > trials:
            break
        point = {each.range.key: each.at(unit) for each, unit in zip(parameters, row.tolist(), strict=True)}
        if point in found:
            continue
        reason = refusal(point)
        refused = reason or refused
        if reason is None:
            found.append(point)
    if len(found) <= trials:
        raise ConfigError(_too_few(parameters, trials, len(found) - 1, refused))
    return found


def require_reachable(
    parameters: Sequence[Parameter], refusal: Callable[[Values], str | None], seed: int = 0
) -> None:
    """Raise ConfigError for each end of a range that the config refuses, wherever the other keys are."""
    sequence = qmc.Sobol(len(parameters), scramble=True, rng=np.random.default_rng(seed))
    drawn = sequence.random(REACHING).tolist()
    problems = []
    for place, each in enumerate(parameters):
        for end in (0.0, LAST):
            reasons = [
                refusal({o.range.key: o.at(unit) for o, unit in zip(parameters, row, strict=True)})
                for row in ([*row[:place], end, *row[place + 1 :]] for row in drawn)
            ]
            if all(reasons):
                problems.append(f"--vary {each}: {each.at(end):g} is never taken: {reasons[0]}")
    if problems:
        raise ConfigError(*problems)


def rungs(trials: int, slices: int) -> list[Rung]:
    """Return the stages of a search with *trials* points on *slices* training slices."""
    stages = [Rung(trials, 1)]
    while stages[-1].slices < slices:
        last = stages[-1]
        stages.append(Rung(ceil(last.trials / 2), min(2 * last.slices, slices)))
    return stages


def runs_of(stages: Sequence[Rung]) -> int:
    """Return the simulated runs that *stages* take."""
    before = [0, *(stage.slices for stage in stages)]
    return sum((stage.trials + 1) * (stage.slices - b) for stage, b in zip(stages, before, strict=False))


def halve(stages: Sequence[Rung], measure: Callable[[Sequence[Pair]], Mapping[Pair, float]]) -> Found:
    """Return the best trial of *stages*; *measure* gives the cost of each pair that it is asked for."""
    ranked = list(range(UNTUNED + 1, stages[0].trials + 1))
    costs: dict[Pair, float] = {}
    done = 0
    for stage in stages:
        ranked = ranked[: stage.trials]
        together = [UNTUNED, *sorted(ranked)]
        costs |= measure([(trial, part) for part in range(done, stage.slices) for trial in together])
        done = stage.slices
        ranked.sort(key=lambda trial: (_mean_cost(costs, trial, done), trial))
    # the untuned config wins ties: a change has to be worth something
    best = min([UNTUNED, *ranked], key=lambda trial: (_mean_cost(costs, trial, done), trial))
    return Found(best, _mean_cost(costs, best, done), _mean_cost(costs, UNTUNED, done))


def _mean_cost(costs: Mapping[Pair, float], trial: int, slices: int) -> float:
    return sum(costs[trial, part] for part in range(slices)) / slices


def _too_few(parameters: Sequence[Parameter], trials: int, left: int, refused: str | None) -> str:
    keys = ", ".join(map(str, parameters))
    why = f"; the config refuses others: {refused}" if refused else ""
    return f"--trials: found {trials}, but {keys} have only {left} different points{why}"
