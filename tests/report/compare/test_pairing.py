"""Which values are paired, which group is marked, and what is told of those without a partner."""

import random

from hypothesis import given
from hypothesis import strategies as st

from vertumnus.report.compare.metrics import METRICS
from vertumnus.report.compare.pairing import Sample, pairable, standings, unpaired

TTFT, ATTAINMENT = METRICS["mean_ttft"], METRICS["attainment"]


def samples(**groups: list[float | None]) -> list[Sample]:
    """Return one sample a seed for each group's values."""
    return [
        Sample(group, seed, f"arrivals {seed}", value)
        for group, values in groups.items()
        for seed, value in enumerate(values)
    ]


def marks(given_samples: list[Sample], baseline: str = "a") -> dict[str, str]:
    """Return the mark of each group."""
    return {each.group: each.mark for each in standings(given_samples, baseline, TTFT)}


def test_a_winner_is_better_than_every_other_group() -> None:
    """c is a tenth below a and b; b is worse than the baseline a."""
    found = samples(a=[1.0, 2.0, 3.0], b=[1.21, 2.4, 3.61], c=[0.9, 1.81, 2.7])
    assert marks(found) == {"a": "", "b": "worse", "c": "best"}
    assert marks(found, "c") == {"a": "worse", "b": "worse", "c": "best"}


def test_nobody_wins_where_intervals_hold_zero() -> None:
    """b is better than the baseline, but not told apart from c: no winner."""
    found = samples(a=[1.0, 2.0, 3.0, 4.0], b=[0.9, 1.8, 2.71, 3.6], c=[0.7, 2.2, 2.4, 4.2])
    assert marks(found) == {"a": "", "b": "better", "c": ""}


def test_the_way_that_is_better_is_the_metrics() -> None:
    """The same numbers as shares of attained tokens: higher is better."""
    found = samples(a=[0.5, 0.6, 0.7], b=[0.61, 0.7, 0.8])
    by_share = {each.group: each.mark for each in standings(found, "a", ATTAINMENT)}
    assert by_share == {"a": "", "b": "best"}
    assert marks(found) == {"a": "best", "b": "worse"}


def test_repeats_of_a_seed_are_one_sample() -> None:
    """Three executed runs of seed 0 count once, as their mean, and do not narrow the interval."""
    runs = [Sample("a", 0, "x", value) for value in (1.0, 2.0, 3.0)] + [Sample("b", 0, "x", 1.0)]
    assert pairable(runs, "a") == {(0, "x"): 2.0}
    first, second = standings(runs, "a", TTFT)
    assert (first.runs, first.value, second.runs) == (3, 2.0, 1)
    assert second.effect is not None and second.effect.pairs == 1
    assert second.effect.difference == (-1.0, None, None)


def test_only_the_same_arrivals_pair() -> None:
    """The same seed at another rate has no partner, and neither has a seed that the baseline lacks."""
    runs = [
        Sample("a", 0, "x", 1.0),
        Sample("b", 0, "y", 2.0),
        Sample("b", 1, "z", 2.0),
        Sample("c", 0, "x", 3.0),
    ]
    found = {each.group: each.effect for each in standings(runs, "a", TTFT)}
    assert found["b"] is None and found["c"] is not None
    assert unpaired(runs, "a") == [
        "b, seed 0: its arrivals are others",
        "b, seed 1: the baseline has no such seed",
    ]


def test_an_undefined_value_is_left_out_of_its_pair() -> None:
    """No request of that phase finished: two pairs are left."""
    found = standings(samples(a=[1.0, None, 3.0], b=[2.0, 2.0, 2.0]), "a", TTFT)
    assert found[1].effect is not None and found[1].effect.pairs == 2
    nothing = standings(samples(a=[None], b=[1.0]), "a", TTFT)
    assert (nothing[0].value, nothing[1].effect) == (None, None)


@given(
    st.lists(st.floats(0.1, 10.0), min_size=2, max_size=6),
    st.lists(st.lists(st.floats(0.5, 2.0), min_size=6, max_size=6), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
)
def test_order_does_not_matter(seeds: list[float], factors: list[list[float]], order: random.Random) -> None:
    """Samples in any order give the same standings; at most one group is best, and nobody beats it."""
    groups: dict[str, list[float | None]] = {"a": [*seeds]}
    for place, by_seed in enumerate(factors):
        groups[f"g{place}"] = [seed * factor for seed, factor in zip(seeds, by_seed, strict=False)]
    all_samples = samples(**groups)
    found = {each.group: each for each in standings(all_samples, "a", TTFT)}
    order.shuffle(all_samples)
    assert {each.group: each for each in standings(all_samples, "a", TTFT)} == found
    best = [group for group, each in found.items() if each.mark == "best"]
    assert len(best) <= 1
    for group in best:
        against = standings(all_samples, group, TTFT)
        assert {each.mark for each in against if each.group != group} == {"worse"}
