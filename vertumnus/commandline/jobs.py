"""The jobs that a command line asks for: composed and checked first, then run one after the other."""

import sys
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from omegaconf import OmegaConf
from rich.console import Console

from vertumnus.commandline.columns import in_columns
from vertumnus.commandline.conf_folders import replaced_files, user_folder
from vertumnus.commandline.exit_codes import BAD_INPUT, FAILED, INTERRUPTED, INVALID, OK
from vertumnus.commandline.flags import Flags
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.commandline.messages import report_problems
from vertumnus.commandline.overrides import for_hydra, job_words
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.errors import ConfigError

if TYPE_CHECKING:
    from vertumnus.run import Outcome


class Job(Struct, frozen=True):
    """One run of a command line."""

    words: tuple[str, ...]
    """Its overrides as typed, one value for each key."""
    config: RunConfig | None
    """None when the words do not make a valid config."""
    problems: tuple[str, ...] = ()


class Ending(Struct, frozen=True):
    """How a job ended."""

    exit_code: int
    status: str
    run_id: str | None = None
    verdict: str | None = None


Action = Callable[[RunConfig, Sequence[str], Console], Ending]
"""What is done with a job's config: run it, or show its plan."""


def run_command(flags: Flags) -> int:
    """Do what *flags* ask for and return the exit code. Raises ConfigError for a single job's problems."""
    with hydra_configs() as loader:
        _tell_replaced_files()
        typed = job_words(flags.overrides, loader, flags.multirun)
        composed_as = [for_hydra(words, loader) for words in typed]
        if flags.show_config:
            documents = [OmegaConf.to_yaml(composed(words), resolve=flags.resolve) for words in composed_as]
            print("---\n".join(documents), end="")
            return OK
        jobs = [_prepared(*words) for words in zip(typed, composed_as, strict=True)]
    action = show_plan if flags.dry_run else execute
    return sweep(jobs, action) if flags.multirun else run_job(jobs[0], action).exit_code


def run_job(job: Job, action: Action) -> Ending:
    """Run *job*. Raises ConfigError when its config is not valid."""
    if job.config is None:
        raise ConfigError(*job.problems)
    return action(job.config, job.words, Console(stderr=True))


def sweep(jobs: Sequence[Job], action: Action) -> int:
    """Run *jobs* one after the other, whatever becomes of each, and close with a table of all.

    Nothing starts when no job has a valid config; a Ctrl-C ends the sweep with the job that it met.
    """
    if not any(job.config for job in jobs):
        raise ConfigError(*dict.fromkeys(problem for job in jobs for problem in job.problems))
    endings: list[Ending] = []
    for number, job in enumerate(jobs, 1):
        print(f"job {number} of {len(jobs)}: {' '.join(job.words)}", file=sys.stderr)
        endings.append(_ending(job, action))
        if endings[-1].exit_code == INTERRUPTED:
            break
    _print_closing_table(jobs, endings)
    return _sweep_code(endings)


def execute(config: RunConfig, words: Sequence[str], console: Console) -> Ending:
    """Run *config* on its backend."""
    from vertumnus import run  # here, so that commands without a run start without its imports

    outcome = run.execute(config, words, console)
    return Ending(_exit_code(outcome), outcome.status, outcome.run_id, outcome.verdict)


def _exit_code(outcome: "Outcome") -> int:
    match outcome.status:
        case "interrupted":
            return INTERRUPTED
        case "failed":
            return FAILED
    return OK if outcome.verdict == "VALID" else INVALID


def show_plan(config: RunConfig, words: Sequence[str], console: Console) -> Ending:
    """Print what running *config* would do."""
    from vertumnus import run  # see execute()

    print(run.plan(config))
    return Ending(OK, "planned")


def _prepared(typed: tuple[str, ...], composed_as: tuple[str, ...]) -> Job:
    try:
        return Job(typed, to_run_config(plain_tree(composed(composed_as))))
    except ConfigError as error:
        return Job(typed, None, error.problems)


def _tell_replaced_files() -> None:
    folder = user_folder()
    if folder and (files := replaced_files(folder)):
        print(f"configs: ./conf replaces the packaged {', '.join(files)}", file=sys.stderr)


def _ending(job: Job, action: Action) -> Ending:
    """Run *job* so that nothing that it does can end the sweep."""
    try:
        return run_job(job, action)
    except ConfigError as error:
        report_problems(error.problems)
        return Ending(BAD_INPUT, "bad input")
    except KeyboardInterrupt:
        return Ending(INTERRUPTED, "interrupted")
    except Exception:
        traceback.print_exc()
        return Ending(FAILED, "failed")


def _sweep_code(endings: Sequence[Ending]) -> int:
    codes = {ending.exit_code for ending in endings}
    if INTERRUPTED in codes:
        return INTERRUPTED
    if codes == {BAD_INPUT}:
        return BAD_INPUT
    if codes & {FAILED, BAD_INPUT}:
        return FAILED
    return INVALID if INVALID in codes else OK


def _print_closing_table(jobs: Sequence[Job], endings: Sequence[Ending]) -> None:
    rows = [("job", "overrides", "status", "verdict", "run")]
    for number, job in enumerate(jobs, 1):
        ending = endings[number - 1] if number <= len(endings) else Ending(INTERRUPTED, "not started")
        rows.append(
            (str(number), _varied(job, jobs), ending.status, ending.verdict or "", ending.run_id or "")
        )
    print(in_columns(rows))


def _varied(job: Job, jobs: Sequence[Job]) -> str:
    """Return the overrides of *job* that some other job does not share."""
    return " ".join(word for word in job.words if any(word not in other.words for other in jobs))
