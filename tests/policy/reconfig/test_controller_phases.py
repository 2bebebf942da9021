"""Windows, trigger, check and choice together, over phases of load like those of Fig. 13."""

from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest

from tests.support.reconfig import a_report
from vertumnus.domain.cluster import Composition, Lattice
from vertumnus.domain.move import Direction
from vertumnus.domain.prefill_time import Coefficients, PrefillTimeModel
from vertumnus.domain.units import SECOND
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.choose import choose
from vertumnus.policy.reconfig.config import ThresholdsController
from vertumnus.policy.reconfig.moves import apply, moves
from vertumnus.policy.reconfig.post_check import post_check
from vertumnus.policy.reconfig.sizes import SizeHistogram
from vertumnus.policy.reconfig.spread import spread
from vertumnus.policy.reconfig.trigger import Trigger
from vertumnus.policy.reconfig.window import DemandWindow, WindowReport

LATTICE = Lattice(40, (4, 8), 8)
CAPACITY = Capacity({4: 0.8, 8: 0.8})
MODEL = PrefillTimeModel.of(
    Coefficients(
        startup_s=0.045,
        per_uncached_s=9e-6,
        per_cached_s=9e-7,
        divided_per_uncached_s=3.24e-4,
        divided_per_pair_s=2.88e-9,
        per_doubling_s=0.0072,
    ),
    (4, 8),
)
WINDOWS = 33
"""A phase of eleven minutes."""


def lengths(random: Random, rate: float, long_fraction: float) -> Iterator[int]:
    """Prompts of one window: short ones around 2,000 tokens, long ones of 32,768 to 60,000."""
    for _ in range(round(20 * rate + random.gauss(0.0, (20 * rate) ** 0.5))):
        is_long = random.random() < long_fraction
        yield (
            random.randint(32_768, 60_000)
            if is_long
            else 1 + int(min(16_000, random.lognormvariate(7.6, 0.7)))
        )


def routed(prompts: list[int], composition: Composition) -> WindowReport:
    """The window's report when its requests are spread over the composition without waste."""
    histogram = SizeHistogram()
    window = DemandWindow(0, 32_768)
    for tokens in prompts:
        histogram.add(tokens, 0)
        window.add(4, tokens, 0, 0)
    counts = window.close(20 * SECOND)
    demand = spread(histogram.classes(), 20 * SECOND, composition, CAPACITY, MODEL).demand_ns
    return a_report(demand / SECOND, counts.counted_long, counts.requests, counts.sizes)


def phase(trigger: Trigger, composition: Composition, seed: int, rate: float, long_fraction: float):
    """Run one phase; return the composition at its end and (window, direction) of each move."""
    random, made = Random(seed), list[tuple[int, Direction]]()
    for number in range(1, WINDOWS + 1):
        report = routed(list(lengths(random, rate, long_fraction)), composition)
        signal = trigger.observe(report, composition)
        if signal.direction is None or signal.cause is None:
            continue
        check = post_check(report, composition, signal.cause, ThresholdsController(), CAPACITY, MODEL)
        move = choose(
            moves(composition, LATTICE),
            signal.direction,
            lambda w: 0,
            lambda every: [0.0] * len(every),
            check,
        )
        if move is not None:
            composition = apply(composition, move)
            made.append((number, move.kind))
            trigger.note_transition()
    return composition, made


@pytest.mark.parametrize("seed", range(4))
def test_the_composition_follows_the_phases(seed: int) -> None:
    """A surge of short prompts splits and a trickle of long ones merges, first within persistence + 2 = 4
    windows and only in that direction; the load between them turns round at most once.
    """
    trigger = Trigger(ThresholdsController(), CAPACITY)
    start = Composition.of_counts({4: 4, 8: 3}, LATTICE)
    steady, drifts = phase(trigger, start, seed, 9.0, 0.08)
    surge, splits = phase(trigger, steady, seed, 30.0, 0.005)
    after, returns = phase(trigger, surge, seed, 9.0, 0.08)
    trickle, merges = phase(trigger, after, seed, 1.3, 0.3)
    assert splits[0][0] <= 4 and {kind for _, kind in splits} == {"split"}
    assert merges[0][0] <= 4 and {kind for _, kind in merges} == {"merge"}
    assert surge.counts()[4] > steady.counts()[4] and trickle.counts()[8] > after.counts()[8]
    assert max(reversals(drifts), reversals(returns)) <= 1


def reversals(made: list[tuple[int, Direction]]) -> int:
    """Moves in the direction opposite to the one before."""
    return sum(kind != before for (_, before), (_, kind) in pairwise(made))
