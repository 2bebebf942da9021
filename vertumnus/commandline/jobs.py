"""The jobs that a command line asks for: composed and checked first, then run, planned or shown."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from hydra.core.config_loader import ConfigLoader
from msgspec import Struct, structs
from omegaconf import OmegaConf

from vertumnus.commandline.conf_folders import replaced_files, user_folder
from vertumnus.commandline.declared import with_declared
from vertumnus.commandline.exit_codes import FAILED, INTERRUPTED, INVALID, OK
from vertumnus.commandline.flags import Flags
from vertumnus.commandline.hydra_configs import composed, composed_tree, hydra_configs
from vertumnus.commandline.narrowing import narrowed
from vertumnus.commandline.overrides import for_hydra, job_words
from vertumnus.config import RunConfig, to_run_config, without_effect
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.records.sweeps import find_sweep, list_sweeps


class Composed(Struct, frozen=True):
    """One run of a command line."""

    words: tuple[str, ...]
    """Its overrides as typed, one value for each key."""
    config: RunConfig | None
    """None when the words do not make a valid config."""
    problems: tuple[str, ...] = ()


def run_command(flags: Flags) -> int:
    """Do what *flags* ask for and return the exit code; raises ConfigError before anything starts."""
    flags = resumed(flags) if flags.resume is not None else flags
    with hydra_configs() as loader:
        _tell_replaced_files()
        typed = job_words(flags.overrides, loader, flags.multirun)
        if flags.show_config:
            _show_configs(typed, loader, flags)
            return OK
        jobs = composed_jobs(typed, loader, is_sweep=flags.multirun, only=flags.only)
        declared = with_declared(typed, loader)
    if flags.multirun and not flags.dry_run and declared == [()]:
        raise ConfigError(
            "-m: found no override, and nothing declares a sweep; name an experiment, or values: "
            "vertumnus +experiment=tool_agent backend=sim -m seed=0,1"
        )
    if flags.multirun:
        return sweep(jobs, flags)
    config = valid_config(jobs[0])
    _tell_unread([(config, jobs[0].words)])
    if declared != typed:
        runs = counted(len(declared), "run")
        print(f"this experiment declares a sweep of {runs}; -m runs them all", file=sys.stderr)
    return show_plan(config) if flags.dry_run else execute(config, jobs[0].words)


def composed_jobs(
    typed: Sequence[tuple[str, ...]],
    loader: ConfigLoader,
    *,
    is_sweep: bool,
    keep: Callable[[Sequence[str]], bool] | None = None,
    only: Sequence[str] = (),
) -> list[Composed]:
    """Return the jobs of *typed*, each of one value a key; of a sweep those declared that *only* allows.

    *keep* is told the words of each job and says whether it is wanted. Raises ConfigError when what an
    experiment declares cannot be read, or *only* leaves none.
    """
    words = narrowed(with_declared(typed, loader), only) if is_sweep else typed
    jobs = [_prepared(each, for_hydra(each, loader)) for each in words if keep is None or keep(each)]
    return jobs if words == typed else list(_distinct(jobs))


def _distinct(jobs: Sequence[Composed]) -> Iterator[Composed]:
    """Yield the jobs without those whose config one before has: declared blocks and what is typed meet."""
    seen: set[bytes] = set()
    for job in jobs:
        config = b"" if job.config is None else msgspec.msgpack.encode(job.config)
        if not config or config not in seen:
            yield job
        seen.add(config)


def _show_configs(typed: Sequence[tuple[str, ...]], loader: ConfigLoader, flags: Flags) -> None:
    jobs = narrowed(with_declared(typed, loader), flags.only) if flags.multirun else typed
    configs = [composed(for_hydra(words, loader)) for words in jobs]
    print("---\n".join(OmegaConf.to_yaml(config, resolve=flags.resolve) for config in configs), end="")


def resumed(flags: Flags) -> Flags:
    """Return *flags* with the words of the sweep to go on with, and those typed, which win.

    Raises ConfigError when there is no such sweep.
    """
    place = [word.partition("=")[2] for word in flags.overrides if word.startswith("runs_dir=")]
    runs_dir = Path(place[-1] if place else "runs")
    record = find_sweep(runs_dir, str(flags.resume))
    if record is None:
        known = ", ".join(list_sweeps(runs_dir)[-3:]) or "none"
        raise ConfigError(f"--resume {flags.resume}: no such sweep in {runs_dir}; the newest are: {known}")
    keys = {word.partition("=")[0] for word in flags.overrides}
    kept = [word for word in record.words if word.partition("=")[0] not in keys]
    return structs.replace(flags, overrides=(*kept, *flags.overrides), only=(*record.only, *flags.only))


def sweep(jobs: Sequence[Composed], flags: Flags) -> int:
    """Plan or run *jobs*; raises ConfigError with the problems of all of them."""
    from vertumnus.commandline import sweeps  # here, so that a single run starts without its imports

    checked = sweeps.checked(jobs)
    _tell_unread([(job.config, job.words) for job in checked])
    if flags.dry_run:
        return sweeps.show_plans(checked, show_plan)
    return sweeps.run(checked, flags)


def valid_config(job: Composed) -> RunConfig:
    """Return the config of *job*. Raises ConfigError when it is not valid."""
    if job.config is None:
        raise ConfigError(*job.problems)
    return job.config


def execute(config: RunConfig, words: Sequence[str]) -> int:
    """Run *config* on its backend and return the exit code."""
    from vertumnus import run  # here, so that commands without a run start without its imports
    from vertumnus.report.drawing import console_for

    outcome = run.execute(config, run.Asked(words), console_for(sys.stderr))
    return exit_code(outcome.status, outcome.verdict)


def exit_code(status: str, verdict: str | None) -> int:
    """Return the exit code of a run that ended with *status* and *verdict*."""
    match status:
        case "interrupted":
            return INTERRUPTED
        case "failed":
            return FAILED
    return OK if verdict == "VALID" else INVALID


def show_plan(config: RunConfig) -> int:
    """Print what running *config* would do."""
    from vertumnus import run  # see execute()

    print(run.plan(config))
    return OK


def _prepared(typed: tuple[str, ...], composed_as: tuple[str, ...]) -> Composed:
    try:
        return Composed(typed, to_run_config(composed_tree(composed_as)))
    except ConfigError as error:
        return Composed(typed, None, error.problems)


def _tell_unread(jobs: Sequence[tuple[RunConfig, Sequence[str]]]) -> None:
    """Say which of the keys that were typed nothing reads in any of *jobs*."""
    typed = [(config, [word.lstrip("+").partition("=")[0] for word in words]) for config, words in jobs]
    for line in without_effect(typed):
        print(line, file=sys.stderr)


def _tell_replaced_files() -> None:
    folder = user_folder()
    if folder and (files := replaced_files(folder)):
        print(f"configs: ./conf replaces the packaged {', '.join(files)}", file=sys.stderr)
