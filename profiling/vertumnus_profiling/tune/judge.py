"""Whether the tuned config is better on slices that it was not trained on, with the doubt that remains.

Both configs serve the same requests of each slice, so differences are paired. Requests near one another in
time wait in the same queues; so consecutive blocks of them are drawn, not single ones, and slices before
blocks (two-level bootstrap). What comes out is an interval for the mean over slices.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from vertumnus_profiling.tune.objectives import Objective, Requests

BLOCKS = 20
"""Of each slice: 40 minutes make blocks of two, longer than a queue lasts below saturation."""
RESAMPLES = 1_000
LEVEL = 0.95


class Pair(NamedTuple):
    """One slice as both configs served it."""

    untuned: Requests
    tuned: Requests


class Judgement(NamedTuple):
    """The objective on the held-out slices, means over them."""

    untuned: float
    tuned: float
    change: float
    """Relative for times, the difference for shares; below 0 the tuned number is the lower one."""
    low: float
    high: float
    """The interval of the change."""
    by_slice: tuple[tuple[float, float], ...]
    """(untuned, tuned) of each."""
    verdict: Literal["better", "worse", "not shown to differ"]


def judge(
    pairs: Sequence[Pair], objective: Objective, seed: int = 0, resamples: int = RESAMPLES
) -> Judgement:
    """Compare both configs on all *pairs*; the same *seed* gives the same interval."""
    by_slice = tuple((objective.measure(pair.untuned), objective.measure(pair.tuned)) for pair in pairs)
    untuned, tuned = np.mean(by_slice, axis=0).tolist()
    changes = [_change(*sample, objective) for sample in _resampled(pairs, objective, seed, resamples)]
    low, high = _interval(changes)
    return Judgement(
        untuned=untuned,
        tuned=tuned,
        change=_change(untuned, tuned, objective),
        low=low,
        high=high,
        by_slice=by_slice,
        verdict=_verdict(low, high, objective.least),
    )


def _change(untuned: float, tuned: float, objective: Objective) -> float:
    difference = tuned - untuned
    return difference if objective.unit == "%" else difference / untuned


def _interval(changes: Sequence[float]) -> tuple[float, float]:
    """Return the middle `LEVEL` of *changes*, as two of them: some may be infinite."""
    ordered = sorted(changes)
    outside = round((1 - LEVEL) / 2 * (len(ordered) - 1))
    return ordered[outside], ordered[-1 - outside]


def _verdict(low: float, high: float, least: bool) -> Literal["better", "worse", "not shown to differ"]:
    if not (low > 0.0 or high < 0.0):  # not a number where both lost requests
        return "not shown to differ"
    return "better" if (high < 0.0) == least else "worse"


def _resampled(
    pairs: Sequence[Pair], objective: Objective, seed: int, resamples: int
) -> list[tuple[float, float]]:
    random = np.random.default_rng(seed)
    blocks = [np.array_split(np.arange(len(pair.untuned.ttft_s)), BLOCKS) for pair in pairs]
    samples = []
    for _ in range(resamples):
        drawn = []
        for number in random.integers(len(pairs), size=len(pairs)):
            chosen = [blocks[number][place] for place in random.integers(BLOCKS, size=BLOCKS)]
            places = np.concatenate(chosen)
            pair = pairs[number]
            drawn.append([objective.measure(each.take(places)) for each in pair])
        untuned, tuned = np.mean(drawn, axis=0).tolist()
        samples.append((untuned, tuned))
    return samples
