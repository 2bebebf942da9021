"""What is tuned for one rate of a cell of the routing grid: the pool, policy=paper, policy=static.

The pool is the adaptive system's, which `static` and `paper` share (sec. 9.1): of those with workers of each
degree the one on which `policy=vertumnus`, whose own parameters are left alone, does best. The weights of
`paper` and the threshold of `static` are searched on it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vertumnus.config import to_run_config
from vertumnus.policy.reconfig.initial import compositions
from vertumnus_profiling.tune.objectives import OBJECTIVES, Requests
from vertumnus_profiling.tune.search import Found, Pair, halve, points, rungs
from vertumnus_profiling.tune.slices import Slice
from vertumnus_profiling.tune.spaces import parameters_of, with_values
from vertumnus_profiling.tune.trials import Asked, Runners

PAPER_POINTS = 12
STATIC_POINTS = 8

Tree = Mapping[str, Any]
Changes = Mapping[str, Any]
"""Values by dotted key."""


class Cell(NamedTuple):
    """One cell at one rate, as the plain trees of its configs."""

    vertumnus: Tree
    paper: Tree
    static: Tree


class Tuned(NamedTuple):
    """What was found for it; costs are mean TTFTs over the training slices [s]."""

    composition: Mapping[int, int]
    paper: Mapping[str, float]
    static: Mapping[str, float]
    vertumnus_s: float
    untuned_s: float
    """policy=paper with beta 1, lambda 0.1, on that pool."""
    paper_s: float
    static_s: float


def tune_cell(cell: Cell, train: Sequence[Slice], runners: Runners[Requests], draw: int = 0) -> Tuned:
    """Search pool, weights and threshold on *train*; *draw* is the seed of the points."""
    pools = _pools(cell.vertumnus)
    by_pool = _best(cell.vertumnus, pools, train, runners)
    composition = pools[by_pool.trial]["cluster.composition"]
    pool = {"cluster.composition": composition}
    weights, by_weights = _searched(with_values(cell.paper, pool), PAPER_POINTS, train, runners, draw)
    threshold, by_threshold = _searched(with_values(cell.static, pool), STATIC_POINTS, train, runners, draw)
    return Tuned(
        composition,
        weights,
        threshold,
        vertumnus_s=by_pool.cost,
        untuned_s=by_weights.untuned_cost,
        paper_s=by_weights.cost,
        static_s=by_threshold.cost,
    )


def _pools(tree: Tree) -> list[Changes]:
    """Return the compositions that have workers of each degree: what placement can choose among."""
    cluster = to_run_config(tree).cluster
    legal = compositions(cluster.gpus, cluster.degrees)
    return [{"cluster.composition": counts} for counts in legal if all(counts.values())]


def _searched(
    tree: Tree, trials: int, train: Sequence[Slice], runners: Runners[Requests], draw: int
) -> tuple[Mapping[str, float], Found]:
    """Return the best values of the policy of *tree*, by field, and what they cost."""
    keys = parameters_of("policy", (), to_run_config(tree))
    tried = points(keys, trials, draw, lambda _values: None)
    found = _best(tree, tried, train, runners)
    return {key.partition(".")[2]: value for key, value in tried[found.trial].items()}, found


def _best(tree: Tree, tried: Sequence[Changes], train: Sequence[Slice], runners: Runners[Requests]) -> Found:
    mean_ttft = OBJECTIVES["mean_ttft"]
    costs: dict[Pair, float] = {}

    def measure(wanted: Sequence[Pair]) -> Mapping[Pair, float]:
        asked = [Asked(pair, train[pair[1]].of(with_values(tree, tried[pair[0]]))) for pair in wanted]
        costs.update((pair, mean_ttft.cost(requests)) for pair, requests in runners.run(asked))
        return costs

    return halve(rungs(len(tried) - 1, len(train)), measure)
