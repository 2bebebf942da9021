"""What ``vertumnus size`` is told: a trace and a pool, as for a run, and what to look for."""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hydra.core.config_loader import ConfigLoader

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.commandline.listing import option_files
from vertumnus.commandline.overrides import for_hydra, job_words
from vertumnus.commandline.parser import Parser
from vertumnus.config import RunConfig, did_you_mean, to_run_config
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.trace.formats.known import KNOWN
from vertumnus.trace.formats.parquet import ParquetRows
from vertumnus.trace.formats.sniff import sniff

POLICIES = ("paper", "vertumnus")
CONTROLLERS = ("thresholds", "brisk")
BLOCK_TOKENS = 512
"""Of the blocks that the pools of conf/cluster count."""
EPILOG = """\
The first half of the trace sizes, the second one judges; everything is simulated.

  vertumnus size TRACE.jsonl.gz model=qwen3_30b_a3b cluster=pool40
  vertumnus size TRACE.jsonl.gz arrival.rate=20 --target 0.95 --policies paper,vertumnus
  vertumnus size workload=tool_agent                  the traffic of a generator

model=NAME stands for the profile and the targets of that name; profile=, slo=, cluster= choose by themselves.
"""


class Options(NamedTuple):
    """One question."""

    tree: Mapping[str, Any]
    """The plain tree of the config, at the rate that is planned, if one is."""
    config: RunConfig
    words: tuple[str, ...]
    """The overrides that make it, for a run."""
    policies: Mapping[str, Mapping[str, Any]]
    """The tree of each policy by its option's name."""
    controllers: Mapping[str, Mapping[str, Any]]
    target: float
    """Token-weighted share that must meet its TTFT target."""
    headroom: float
    """A recommended candidate carries this many times the planned rate."""
    jobs: int
    """Simulations at a time."""
    as_json: bool


def read_options(words: Sequence[str]) -> Options:
    """Take *words* apart and compose the config. Raises ConfigError with every problem found."""
    read = _parser().parse_intermixed_args(list(words))
    _require_flags(read)
    files = [word for word in read.words if "=" not in word and not word.startswith(("+", "~"))]
    if len(files) > 1:
        raise ConfigError(
            f"found {counted(len(files), 'trace')} ({', '.join(files)}), must be one; workload.mix "
            f"adds others"
        )
    overrides = [word for word in read.words if word not in files]
    base = ("backend=sim", "controller=off", *_trace_words(files, overrides), *_model_words(overrides))
    with hydra_configs() as loader:
        words = (*base, *(word for word in overrides if not word.startswith("model=")))
        tree = _tree(words, loader)
        policies = {
            name: _tree((*words, f"policy={name}"), loader)["policy"]
            for name in _named("policy", read.policies)
        }
        controllers = {
            name: _tree((*words, f"controller={name}"), loader)["controller"] for name in CONTROLLERS
        }
    if tree["backend"]["kind"] != "sim":
        raise ConfigError(f"backend: found {tree['backend']['kind']}, but sizes are found by simulation")
    config = to_run_config(tree)
    if config.arrival.patience_s is not None:
        raise ConfigError(
            f"arrival.patience_s: found {config.arrival.patience_s:g}, must be null: a pool is sized for "
            "clients of whom none has to give up"
        )
    return Options(
        tree, config, words, policies, controllers, read.target, read.headroom, read.jobs, read.json
    )


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="vertumnus size",
        description="Which composition and policy for a trace, what they carry, and how sure that is.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "words", nargs="+", metavar="TRACE|key=value", help="a trace file, and overrides as for a run"
    )
    parser.add_argument(
        "--policies",
        default=",".join(POLICIES),
        metavar="NAME,...",
        help=f"policies to compare, of vertumnus ls policy; default {','.join(POLICIES)}",
    )
    parser.add_argument(
        "--target",
        type=float,
        default=0.9,
        metavar="SHARE",
        help="share of the tokens that must meet their TTFT target; default 0.9",
    )
    parser.add_argument(
        "--headroom",
        type=float,
        default=1.2,
        metavar="FACTOR",
        help="times the planned rate that must be carried; default 1.2",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="simulations at a time; default one a core",
    )
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    return parser


def _require_flags(read: argparse.Namespace) -> None:
    problems = []
    if not 0.0 < read.target <= 1.0:
        problems.append(f"--target: found {read.target:g}, must be above 0 and at most 1")
    if not 1.0 <= read.headroom <= 100.0:
        problems.append(f"--headroom: found {read.headroom:g}, must be from 1 to 100")
    if read.jobs < 1:
        problems.append(f"--jobs: found {read.jobs}, must be at least 1")
    if problems:
        raise ConfigError(*problems)


def _trace_words(files: Sequence[str], overrides: Sequence[str]) -> list[str]:
    """Return the overrides that make the run replay the file named, in the format that it has."""
    if not files:
        return ["arrival=trace"]
    keys = {word.partition("=")[0] for word in overrides}
    path = Path(files[0])
    format_name = sniff(path)
    block = (
        ParquetRows(path).about.block_tokens if format_name == "parquet" else KNOWN[format_name].block_tokens
    )
    words = [
        "workload=conversation",
        "arrival=trace",
        f"workload.path='{path}'",
        f"workload.name='{path.name}'",
    ]
    words += [f"workload.format={format_name}", f"workload.block_tokens={block}"]
    if block != BLOCK_TOKENS and "cluster.blocks_per_rank" not in keys:
        words.append(f"cluster.blocks_per_rank={585 * BLOCK_TOKENS // block}")
    return [word for word in words if word.partition("=")[0] not in keys]


def _model_words(overrides: Sequence[str]) -> list[str]:
    """Return the profile and the targets that ``model=NAME`` stands for."""
    named = [word.partition("=")[2] for word in overrides if word.startswith("model=")]
    if not named:
        return []
    keys = {word.partition("=")[0] for word in overrides}
    of_model = [name for name in option_files("profile") if name.startswith(f"{named[-1]}-")]
    # MODEL-HARDWARE-tp4 and the like are variants of MODEL-HARDWARE
    profiles = [name for name in of_model if not any(name.startswith(f"{other}-") for other in of_model)]
    if "profile" not in keys and len(profiles) != 1:
        known = sorted({name.partition("-")[0] for name in option_files("profile") if "-" in name})
        found = counted(len(profiles), "profile") if profiles else "no profile"
        raise ConfigError(
            f"model={named[-1]}: {found} of that name{did_you_mean(named[-1], known)}; profile=NAME names one"
        )
    words = [f"profile={profile}" for profile in profiles if "profile" not in keys]
    return words + ([f"slo={named[-1]}"] if named[-1] in option_files("slo") and "slo" not in keys else [])


def _named(group: str, text: str) -> list[str]:
    names = list(dict.fromkeys(filter(None, text.split(","))))
    known = option_files(group)
    problems = [
        f"--policies: {name}: no such policy{did_you_mean(name, known)}"
        for name in names
        if name not in known
    ]
    if problems or not names:
        raise ConfigError(*(problems or [f"--policies: found {text!r}, must name one of {', '.join(known)}"]))
    return names


def _tree(words: Sequence[str], loader: ConfigLoader) -> dict[str, Any]:
    (typed,) = job_words(words, loader, multirun=False)
    return plain_tree(composed(for_hydra(typed, loader)))
