"""What ``vertumnus tune`` is told: the config as for a run, and flags for the search, all checked first."""

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.commandline.overrides import for_hydra, job_words
from vertumnus.commandline.parser import Parser
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.errors import ConfigError
from vertumnus.sim.config import SimConfig
from vertumnus_profiling.tune.objectives import OBJECTIVES
from vertumnus_profiling.tune.slices import FORMS, Slice, read_slices, require_apart
from vertumnus_profiling.tune.spaces import SPACES, Parameter, Range, parameters_of

EPILOG = f"""\
slices (--train, --judge): {FORMS}
spaces (--space):
{{spaces}}
  a key that the chosen variant does not have is left out: policy=paper has beta and gpu_time_weight,
  policy=static length_threshold

Every trial is a simulated run: use backend=sim, for the machine here with its profile and pool:
  vertumnus tune +experiment=reconfigure --space controller --train seed:10..12 --judge seed:1..3
  vertumnus tune +experiment=tool_agent backend=sim policy=static policy.length_threshold=8192 \\
      --space policy --train seed:10..12 --judge seed:1..5 --objective p90_ttft --out conf/policy/mine.yaml
  vertumnus tune +experiment=conversation backend=sim workload.path=T.jsonl --space policy \\
      --train time:0..1200 --judge time:1200..3600
  vertumnus +experiment=reconfigure controller=tuned     a run that uses it
"""


class Options(NamedTuple):
    """One search."""

    words: tuple[str, ...]
    """The command line, for the file's provenance."""
    tree: Mapping[str, Any]
    """The plain tree of the untuned config."""
    config: RunConfig
    space: str
    parameters: tuple[Parameter, ...]
    train: tuple[Slice, ...]
    judge: tuple[Slice, ...]
    objective: str
    trials: int
    draw: int
    jobs: int
    """Simulations at a time."""
    out: Path
    force: bool


def read_options(words: Sequence[str]) -> Options:
    """Take *words* apart and compose the config. Raises ConfigError with every problem found."""
    read = _parser().parse_intermixed_args(list(words))
    problems = list(_flag_problems(read))
    with _noted(problems):
        tree = _composed(read.overrides)
        config = to_run_config(tree)
        problems += _backend_problems(config)
        problems += _patience_problems(config, read.objective)
    with _noted(problems):
        train = read_slices(read.train, "--train")
    with _noted(problems):
        judge = read_slices(read.judge, "--judge")
    with _noted(problems):
        varied = [_range(text) for text in read.vary]
    out = read.out or Path("conf", read.space, "tuned.yaml")
    with _noted(problems):
        _require_free(out, read.force)
    if problems:
        raise ConfigError(*problems)
    require_apart(train, judge, config)
    return Options(
        words=("vertumnus", "tune", *words),
        tree=tree,
        config=config,
        space=read.space,
        parameters=parameters_of(read.space, varied, config, read.keep),
        train=train,
        judge=judge,
        objective=read.objective,
        trials=read.trials,
        draw=read.draw,
        jobs=read.jobs,
        out=out,
        force=read.force,
    )


@contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    """Add the problems of a ConfigError to *problems*: what follows is looked at all the same."""
    try:
        yield
    except ConfigError as error:
        problems += error.problems


def _backend_problems(config: RunConfig) -> Iterator[str]:
    if not isinstance(config.backend, SimConfig):
        yield (
            "backend: found live, but trials are simulated: hundreds of runs must not wait for ranks; "
            "use backend=sim, for a pool of this machine with profile=NAME cluster=four_ranks scale=sixteenth"
        )


def _patience_problems(config: RunConfig, objective: str) -> Iterator[str]:
    if config.arrival.patience_s is not None and objective == "mean_ttft":
        yield (
            f"arrival.patience_s: found {config.arrival.patience_s:g}, must be null with --objective "
            "mean_ttft, since who gives up has no TTFT; use --objective attainment"
        )


def _parser() -> argparse.ArgumentParser:
    spaces = "\n".join(f"  {name:10}  {', '.join(r.key for r in ranges)}" for name, ranges in SPACES.items())
    parser = Parser(
        prog="vertumnus tune",
        description="Calibrate thresholds or weights on training slices, judge them on others, keep them.",
        epilog=EPILOG.format(spaces=spaces),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="Hydra overrides, as for a run")
    parser.add_argument("--space", required=True, metavar="NAME", help="which keys: " + ", ".join(SPACES))
    parser.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="KEY=LOW..HIGH",
        help="another key of the space, or another range; ,log spreads it in the logarithm; repeatable",
    )
    parser.add_argument(
        "--keep", action="append", default=[], metavar="KEY", help="leave this key as it is; repeatable"
    )
    parser.add_argument("--train", required=True, metavar="SLICES", help="slices to search on")
    parser.add_argument("--judge", required=True, metavar="SLICES", help="other slices, to judge on")
    parser.add_argument(
        "--objective", choices=OBJECTIVES, default="mean_ttft", help="what to make better; default mean_ttft"
    )
    parser.add_argument("--trials", type=int, default=32, metavar="N", help="points to try; default 32")
    parser.add_argument("--draw", type=int, default=0, metavar="N", help="seed of the points; default 0")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="simulations at a time; default one a core",
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the config to write; default conf/SPACE/tuned.yaml"
    )
    parser.add_argument("--force", action="store_true", help="replace --out, and trials of another search")
    return parser


def _flag_problems(read: argparse.Namespace) -> Iterator[str]:
    for flag, least in (("trials", 2), ("jobs", 1), ("draw", 0)):
        value = getattr(read, flag)
        if value < least:
            yield f"--{flag}: found {value}, must be at least {least}"
    if read.trials > 4_096:
        yield f"--trials: found {read.trials}, must be at most 4096"


def _require_free(out: Path, force: bool) -> None:
    if out.suffix != ".yaml":
        raise ConfigError(f"--out: found {out}, must end in .yaml")
    if out.is_dir() or (out.exists() and not force):
        raise ConfigError(f"--out: {out} exists; give another name, or replace it with --force")


def _range(text: str) -> Range:
    key, equals, rest = text.partition("=")
    ends, _, scale = rest.partition(",")
    low, dots, high = ends.partition("..")
    try:
        if not (equals and dots and scale in ("", "log")):
            raise ValueError
        found = Range(key, float(low), float(high), scale == "log")
    except ValueError:
        raise ConfigError(f"--vary: found {text!r}, must be KEY=LOW..HIGH or KEY=LOW..HIGH,log") from None
    if not found.low < found.high < float("inf") or (found.log and found.low <= 0.0):
        raise ConfigError(f"--vary: found {text!r}, must ascend, for ,log from above 0")
    return found


def _composed(overrides: Sequence[str]) -> dict[str, Any]:
    with hydra_configs() as loader:
        (words,) = job_words(overrides, loader, multirun=False)
        return plain_tree(composed(for_hydra(words, loader)))
