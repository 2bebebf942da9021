"""The search: which points are tried, on how many slices, and which one wins."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vertumnus.domain.errors import ConfigError
from vertumnus_profiling.tune.search import Rung, Values, halve, points, require_reachable, rungs, runs_of
from vertumnus_profiling.tune.spaces import Parameter, Range

UPPER = Parameter(Range("controller.upper", 0.6, 1.4), False, 1.05)
LOWER = Parameter(Range("controller.lower", 0.2, 0.8), False, 0.65)
WINDOWS = Parameter(Range("controller.persistence", 1, 4), True, 2)


def takes_all(_point: Values) -> None:
    """A config that refuses nothing."""


def below(point: Values) -> str | None:
    """lower has to be below upper, as in the config."""
    return None if point["controller.lower"] < point["controller.upper"] else "lower must be below upper"


def test_points_are_the_untuned_one_and_different_ones_that_the_config_takes() -> None:
    """As many as asked, the same for the same draw, none that the config refuses."""
    found = points((UPPER, LOWER), 40, 3, below)
    assert found[0] == {"controller.upper": 1.05, "controller.lower": 0.65}
    assert len(found) == 41 == len({tuple(point.values()) for point in found})
    assert not any(below(point) for point in found)
    assert found == points((UPPER, LOWER), 40, 3, below) != points((UPPER, LOWER), 40, 4, below)


def test_points_fill_the_space() -> None:
    """Of 64 points every eighth of the range of either key has 5 to 11."""
    drawn = points((UPPER, LOWER), 64, 0, takes_all)[1:]
    for key, low, high in (("controller.upper", 0.6, 1.4), ("controller.lower", 0.2, 0.8)):
        counts, _ = np.histogram([point[key] for point in drawn], bins=8, range=(low, high))
        assert counts.min() >= 5 and counts.max() <= 11


def test_too_few_points_are_told() -> None:
    """Four whole numbers, one of them untuned, are three other points."""
    assert len(points((WINDOWS,), 3, 0, takes_all)) == 4
    with pytest.raises(ConfigError, match=r"--trials: found 4, but controller.persistence 1..4 have only 3"):
        points((WINDOWS,), 4, 0, takes_all)
    with pytest.raises(ConfigError, match="the config refuses others: never"):
        points((UPPER,), 4, 0, lambda point: "never")


def test_an_end_that_the_config_never_takes_is_told() -> None:
    """lower up to 1.5 cannot be below an upper of at most 1.4; its other end can."""
    require_reachable((UPPER, LOWER), below)
    far = LOWER._replace(range=Range("controller.lower", 0.2, 1.5))
    with pytest.raises(ConfigError) as caught:
        require_reachable((UPPER, far), below)
    (problem,) = caught.value.problems
    assert problem.startswith("--vary controller.lower 0.2..1.5: 1.5 is never taken: lower must be below")


def test_each_rung_costs_about_as_much_as_the_first() -> None:
    """40 points on one slice, 20 on two, 10 on four, 5 on six; the untuned config on all of them."""
    stages = rungs(40, 6)
    assert stages == [Rung(40, 1), Rung(20, 2), Rung(10, 4), Rung(5, 6)]
    assert runs_of(stages) == 41 + 21 + 2 * 11 + 2 * 6
    assert rungs(2, 1) == [Rung(2, 1)]


class Measured:
    """Costs by trial and slice, and what was asked for."""

    def __init__(self, cost: Mapping[int, Sequence[float]]) -> None:
        self.cost = cost
        self.asked: list[tuple[int, int]] = []

    def __call__(self, wanted: Sequence[tuple[int, int]]) -> dict[tuple[int, int], float]:
        self.asked += wanted
        return {(trial, part): self.cost[trial][part] for trial, part in wanted}


def test_the_best_over_all_slices_of_those_that_came_so_far() -> None:
    """Trial 3 is best on the first slice but not over both; trial 4 would be, but fell on the first."""
    measured = Measured({0: (5, 5), 1: (2, 3), 2: (6, 1), 3: (1, 9), 4: (7, 0)})
    found = halve(rungs(4, 2), measured)
    assert (found.trial, found.cost, found.untuned_cost) == (1, 2.5, 5.0)
    assert measured.asked == [(t, 0) for t in range(5)] + [(0, 1), (1, 1), (3, 1)]


def test_the_untuned_config_wins_ties_and_lost_requests_never_win() -> None:
    """An equal cost is no reason to change; an infinite one stands for requests that did not finish."""
    assert halve(rungs(2, 1), Measured({0: (1,), 1: (1,), 2: (float("inf"),)})).trial == 0


@settings(max_examples=50)
@given(st.integers(2, 30), st.integers(1, 9), st.randoms(use_true_random=False))
def test_no_pair_is_run_twice_and_the_winner_is_measured_on_every_slice(trials, slices, random) -> None:
    """Whatever the costs, the cost told is the mean over all training slices, at most the untuned one's."""
    cost = {trial: [random.random() for _ in range(slices)] for trial in range(trials + 1)}
    measured = Measured(cost)
    stages = rungs(trials, slices)
    found = halve(stages, measured)
    assert len(measured.asked) == len(set(measured.asked)) == runs_of(stages)
    assert found.cost == pytest.approx(sum(cost[found.trial]) / slices)
    assert found.cost <= found.untuned_cost == pytest.approx(sum(cost[0]) / slices)
