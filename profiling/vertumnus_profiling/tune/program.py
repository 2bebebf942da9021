"""From options to a tuned config: points, trials, the winner, the judgement, the file."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy
import scipy
from msgspec import structs
from rich.console import Console

import vertumnus
from vertumnus.config import to_run_config
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.records.provenance import git_revision, library_versions
from vertumnus.run.progress import Progress
from vertumnus_profiling.tune import judge, trials
from vertumnus_profiling.tune.journal import Journal, SearchSettings, Tried
from vertumnus_profiling.tune.objectives import OBJECTIVES, Requests
from vertumnus_profiling.tune.options import Options
from vertumnus_profiling.tune.search import (
    UNTUNED,
    Found,
    Pair,
    Values,
    halve,
    points,
    require_reachable,
    rungs,
    runs_of,
)
from vertumnus_profiling.tune.show import show_found, show_judgement, show_use
from vertumnus_profiling.tune.slices import Slice
from vertumnus_profiling.tune.spaces import with_values
from vertumnus_profiling.tune.trials import Asked, Runners
from vertumnus_profiling.tune.writing import Origin, write_config


class Tuned(NamedTuple):
    """What a search came to."""

    values: Values
    judgement: judge.Judgement | None
    """None when nothing beat the untuned config on the training slices."""


def tune(options: Options, console: Console) -> Tuned:
    """Search, judge and write what *options* ask for.

    Narration goes to *console*, results to stdout. Raises ConfigError before anything is run,
    VertumnusError when a process dies; trials are kept then.
    """
    tried = _points(options)
    with (
        Journal(_journal(options.out), _settings(options), anew=options.force) as journal,
        Runners(options.jobs, trials.measured) as runners,
    ):
        found = _search(options, tried, journal, runners, console)
        objective = OBJECTIVES[options.objective]
        values = tried[found.trial]
        show_found(found, values, tried[UNTUNED], objective, len(options.train))
        if found.trial == UNTUNED:
            return Tuned(values, None)
        judgement = judge.judge(_judged(options, values, runners, console), objective)
    _write(options, values, found, judgement)
    show_judgement(judgement, options.judge, objective)
    show_use(options.out, options.space)
    return Tuned(values, judgement)


def _points(options: Options) -> list[Values]:
    def refusal(values: Values) -> str | None:
        try:
            to_run_config(with_values(options.tree, values))
        except ConfigError as error:
            return error.problems[0]
        return None

    require_reachable(options.parameters, refusal)
    return points(options.parameters, options.trials, options.draw, refusal)


def _search(
    options: Options, tried: Sequence[Values], journal: Journal, runners: Runners[Requests], console: Console
) -> Found:
    stages = rungs(options.trials, len(options.train))
    objective, total = OBJECTIVES[options.objective], runs_of(stages)
    if journal.costs:
        console.print(f"continuing {journal.path}: {len(journal.costs)} of {counted(total, 'run')} are done")
    slices = counted(len(options.train), "slice")
    console.print(f"tune: {counted(len(tried), 'point')} on {slices}, at most {counted(total, 'run')}")
    with Progress(console, "tune", total - len(journal.costs), "runs") as progress:
        before = len(journal.costs)

        def measure(wanted: Sequence[Pair]) -> Mapping[Pair, float]:
            missing = [pair for pair in wanted if pair not in journal.costs]
            trees = ((pair, tried[pair[0]], options.train[pair[1]]) for pair in missing)
            for pair, requests in runners.run(_asked(options.tree, trees)):
                cost = objective.cost(requests)
                kept = cost if numpy.isfinite(cost) else None
                journal.add(Tried(pair[0], pair[1], kept, dict(tried[pair[0]])))
                progress.show(len(journal.costs) - before)
            return journal.costs

        return halve(stages, measure)


def _judged(
    options: Options, values: Values, runners: Runners[Requests], console: Console
) -> list[judge.Pair]:
    arms: tuple[Values, Values] = ({}, values)
    served: dict[Pair, Requests] = {}
    trees = (
        ((arm, part), arms[arm], options.judge[part]) for part in range(len(options.judge)) for arm in (0, 1)
    )
    with Progress(console, "judge", 2 * len(options.judge), "runs") as progress:
        for pair, requests in runners.run(_asked(options.tree, trees)):
            served[pair] = requests
            progress.show(len(served))
    return [judge.Pair(served[0, part], served[1, part]) for part in range(len(options.judge))]


def _asked(tree: Mapping[str, Any], wanted: Iterable[tuple[Pair, Values, Slice]]) -> list[Asked]:
    return [Asked(pair, part.of(with_values(tree, values))) for pair, values, part in wanted]


def _settings(options: Options) -> SearchSettings:
    tree = structs.replace(options.config, runs_dir="")
    return SearchSettings(
        config=blake2b(msgspec.json.encode(tree), digest_size=8).hexdigest(),
        parameters=tuple(map(str, options.parameters)),
        objective=options.objective,
        train=tuple(map(str, options.train)),
        trials=options.trials,
        draw=options.draw,
        versions={"vertumnus": vertumnus.__version__, "numpy": numpy.__version__, "scipy": scipy.__version__},
    )


def _write(options: Options, values: Values, found: Found, judgement: judge.Judgement) -> None:
    config, objective = options.config, OBJECTIVES[options.objective]
    tuned = to_run_config(with_values(options.tree, values))
    sign = 1.0 if objective.least else -1.0
    assert config.profile is not None, "a simulated run has one"
    origin = Origin(
        command=options.words,
        date=datetime.now(UTC).date().isoformat(),
        versions=_versions(),
        workload=config.workload.name,
        hardware=(
            f"{config.profile.model} on {config.profile.hardware}, {config.cluster.gpus} GPUs at degrees "
            f"{list(config.cluster.degrees)}, scan interval {config.cache.scan_interval_s:g} s"
        ),
        search=(
            f"{', '.join(map(str, options.parameters))}; {options.trials} points "
            f"(Sobol, draw {options.draw}), the better half on twice as many slices"
        ),
        objective_name=options.objective,
        objective=objective,
        training=(sign * found.untuned_cost, sign * found.cost),
        train=tuple(map(str, options.train)),
        judged=tuple(map(str, options.judge)),
    )
    untuned = {each.range.key.partition(".")[2]: each.untuned for each in options.parameters}
    write_config(options.out, getattr(tuned, options.space), untuned, origin, judgement)


def _versions() -> str:
    found = library_versions()
    parts = [f"vertumnus {vertumnus.__version__}", f"python {found['python']}", f"numpy {found['numpy']}"]
    revision = git_revision()
    return ", ".join([*parts, f"scipy {scipy.__version__}", *([f"git {revision[:12]}"] if revision else [])])


def _journal(out: Path) -> Path:
    return out.with_suffix("") / "trials.jsonl"
