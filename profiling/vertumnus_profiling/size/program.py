"""From a question to an answer: every candidate on the first half, the recommended one on the second."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rich.console import Console

from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.cluster import Composition
from vertumnus.domain.errors import ConfigError
from vertumnus.run.initial import size as suited
from vertumnus.run.progress import Progress
from vertumnus.trace.history import WorkloadHead
from vertumnus_profiling.size.ceiling import Ceiling, ceiling
from vertumnus_profiling.size.choosing import Candidate, Measured, recommended
from vertumnus_profiling.size.halves import Half, halves
from vertumnus_profiling.size.options import Options
from vertumnus_profiling.size.trials import Sized, sized
from vertumnus_profiling.tune.objectives import Requests
from vertumnus_profiling.tune.trials import Asked, Runners, stream_of

MOST_COMPOSITIONS = 12
"""So many are tried; of more, those that suit the first half's lengths and load best."""
MOST_RANKED = 2_000


class Answer(NamedTuple):
    """What a trace wants, found on its first half and looked at on its second."""

    first: Half
    second: Half
    ceiling: Ceiling
    planned_rate: float
    """At which the first half is replayed [req/s]."""
    measured: Sequence[Measured]
    """Every candidate on the first half, the recommended one first."""
    left_out: int
    """Compositions that were not tried."""
    choice: Measured
    later: Requests
    """The recommended candidate on the second half."""
    adaptive: Mapping[str, tuple[Requests, Requests]]
    """By controller: the recommended candidate with it, on either half."""

    @property
    def best_controller(self) -> str:
        """The controller that served the first half best."""
        return min(self.adaptive, key=lambda name: float(self.adaptive[name][0].ttft_s.mean()))


def answer(options: Options, console: Console) -> Answer:
    """Simulate what *options* ask for; progress goes to *console*.

    Raises ConfigError before anything is simulated, VertumnusError when a process dies.
    """
    first, second = halves(options.config)
    config = to_run_config(first.of(options.tree))
    bound = _feasible(config, options.target)
    compositions, left_out = _compositions(config)
    candidates = _candidates(options, compositions, first)
    with Runners(options.jobs, partial(sized, target=options.target)) as runners:
        trees = [first.of(candidate.tree(options.tree)) for candidate in candidates]
        found = _run(runners, trees, "size", console)
    measured = [Measured(each, one) for each, one in zip(candidates, found, strict=True)]
    planned = config.arrival.rate or first.rate / (config.arrival.time_scale or 1.0)
    ranking = recommended(measured, planned * options.headroom, options.target)
    choice = ranking[0]
    with Runners(options.jobs, partial(sized, target=None)) as runners:
        later, adaptive = _judged(runners, options, choice.candidate, (first, second), console)
    return Answer(first, second, bound, planned, ranking, left_out, choice, later, adaptive)


def _feasible(config: RunConfig, target: float) -> Ceiling:
    """Return the bound of the first half. Raises ConfigError when the target is above it."""
    bound = ceiling(config, stream_of(config))
    if bound.attainment < target:
        raise ConfigError(
            f"--target: found {target:g}, but with nobody waiting and an unlimited cache "
            f"{bound.attainment:.1%} of the tokens meet their TTFT target; lower it, or choose a longer slo"
        )
    return bound


def _compositions(config: RunConfig) -> tuple[list[Composition], int]:
    """Return the compositions to try, those first that suit the lengths and carry the load."""
    ranking = suited(config, WorkloadHead(share=1.0, in_sample=True)).rule.ranking(MOST_RANKED)
    if ranking is None:
        raise ConfigError(
            f"cluster.degrees: found {list(config.cluster.degrees)}, which make more than {MOST_RANKED:,} "
            f"compositions of {config.cluster.gpus} GPUs; use fewer degrees"
        )
    kept = [candidate.composition for candidate in ranking[:MOST_COMPOSITIONS]]
    return kept, len(ranking) - len(kept)


def _candidates(options: Options, compositions: Sequence[Composition], first: Half) -> list[Candidate]:
    """Return every policy on every composition that it can run on. Raises ConfigError when there is none."""
    found: list[Candidate] = []
    problems: list[str] = []
    for name, policy in options.policies.items():
        for composition in compositions:
            candidate = Candidate(name, policy, composition.counts())
            try:
                to_run_config(first.of(candidate.tree(options.tree)))
            except ConfigError as error:
                problems += error.problems
            else:
                found.append(candidate)
    if not found:
        raise ConfigError(*dict.fromkeys(problems))
    return found


def _judged(
    runners: Runners[Sized],
    options: Options,
    candidate: Candidate,
    both: tuple[Half, Half],
    console: Console,
) -> tuple[Requests, dict[str, tuple[Requests, Requests]]]:
    """Serve the second half as recommended, and both with each controller."""
    fixed = candidate.tree(options.tree)
    adaptive = [{**fixed, "controller": controller} for controller in options.controllers.values()]
    trees = [both[1].of(fixed), *(half.of(tree) for tree in adaptive for half in both)]
    later, *pairs = [each.requests for each in _run(runners, trees, "judge", console)]
    return later, dict(zip(options.controllers, zip(pairs[::2], pairs[1::2], strict=True), strict=True))


def _run(
    runners: Runners[Sized], trees: Sequence[Mapping[str, Any]], what: str, console: Console
) -> list[Sized]:
    """Return the result of each of *trees*, in their order."""
    asked = [Asked((number, 0), tree) for number, tree in enumerate(trees)]
    found: dict[int, Sized] = {}
    with Progress(console, what, len(trees), "candidates") as progress:
        for (number, _), result in runners.run(asked):
            found[number] = result
            progress.show(len(found))
    return [found[number] for number in range(len(trees))]
