"""What ``vertumnus profile`` is told: Hydra overrides and flags, checked before anything is measured."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.commandline.overrides import for_hydra, job_words
from vertumnus.commandline.parser import Parser, folder
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.profile import Form
from vertumnus.live.config import LiveConfig, ModelConfig

FORMS: tuple[Form, ...] = get_args(Form)
IGNORED = ("profile", "policy", "arrival", "name", "purpose")
"""Parts of a run that measuring has no use for: the result is a profile, one worker is alone, and its
arrivals are a search."""

EPILOG = """\
keys: model, cluster.degrees (what is swept), workload and scale (block size; requests for kappa),
      slo (targets for kappa), cluster.blocks_per_rank, seed, backend.*
      (vertumnus --cfg job shows them)
      points are kept as they come: a second start with the same settings continues

  vertumnus profile model=tiny
  vertumnus profile model=small cluster.degrees=[1,2,4] --points 64+0,256+0,512+0,1024+0,256+1024,1024+1024
  vertumnus +experiment=tool_agent profile=NAME     a run that uses it
"""


class Options(Struct, frozen=True, kw_only=True):
    """One profile to be made."""

    config: RunConfig
    model: ModelConfig
    live: LiveConfig
    points: str = "full"
    """A named grid, or ``R+P,...``."""
    repeats: int = 8
    """Undisturbed samples of each point, >= 1."""
    out: Path = Path("conf", "profile")
    """Folder of the profile; points and figures go to one of its name beside it."""
    form: Form = "per_degree"
    """The form that runs use."""
    clock: Literal["auto", "cpu"] = "auto"
    """Wall time up to the cores and CPU time beyond, or CPU time at every degree."""
    force: bool = False
    capacity: Literal["sim", "live"] | None = "sim"
    """Where kappa is looked for; None: not at all."""


def read_options(words: Sequence[str]) -> Options:
    """Take *words* apart and compose the config. Raises ConfigError with every problem found."""
    read = _parser().parse_intermixed_args(list(words))
    problems = list(_flag_problems(read)) + list(_ignored(read.overrides))
    if problems:
        raise ConfigError(*problems)
    config = _composed(read.overrides)
    if not isinstance(config.backend, LiveConfig) or config.model is None:
        raise ConfigError("backend: found sim, but a profile is measured; use backend=live")
    return Options(
        config=config,
        model=config.model,
        live=config.backend,
        points=read.points,
        repeats=read.repeats,
        out=read.out,
        form=read.form,
        clock=read.clock,
        force=read.force,
        capacity="live" if read.live else None if read.no_capacity else "sim",
    )


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vertumnus profile",
        description="Measure a model's prefill times here, fit Eq. 2 to them, find each degree's capacity.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="Hydra overrides, as for a run")
    parser.add_argument(
        "--points", default="full", metavar="GRID", help="quick, full (default) or R+P,R+P,... [tokens]"
    )
    parser.add_argument(
        "--repeats", type=int, default=8, metavar="N", help="undisturbed samples of each point; default 8"
    )
    parser.add_argument(
        "--out",
        type=folder,
        default=Path("conf", "profile"),
        metavar="FOLDER",
        help="folder of the profile; default conf/profile, where profile=NAME finds it",
    )
    parser.add_argument("--form", choices=FORMS, default="per_degree", help="the form that runs use")
    parser.add_argument(
        "--clock",
        choices=("auto", "cpu"),
        default="auto",
        help="auto: wall time up to the cores; cpu: CPU time always, for a machine that is never quiet",
    )
    parser.add_argument("--force", action="store_true", help="write the profile even if its fit is refused")
    parser.add_argument("--no-capacity", action="store_true", help="leave kappa out")
    parser.add_argument("--live", action="store_true", help="look for kappa on the ranks, not the simulator")
    return parser


def _flag_problems(read: argparse.Namespace) -> Iterator[str]:
    if read.repeats < 1:
        yield f"--repeats: found {read.repeats}, must be at least 1"
    if read.live and read.no_capacity:
        yield "--live: has no effect with --no-capacity"


def _ignored(overrides: Sequence[str]) -> Iterator[str]:
    for word in overrides:
        key = word.lstrip("+~").partition("=")[0]
        if key.partition(".")[0].partition("@")[0] in IGNORED:
            yield f"{key}: has no effect on a profile; leave it out"


def _composed(overrides: Sequence[str]) -> RunConfig:
    with hydra_configs() as loader:
        (words,) = job_words(overrides, loader, multirun=False)
        return to_run_config(plain_tree(composed(for_hydra(words, loader))))
