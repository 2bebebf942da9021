"""A sweep as the command line runs it: all jobs checked, then run, then the table of all."""

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from vertumnus import sweep
from vertumnus.commandline.columns import in_columns
from vertumnus.commandline.exit_codes import FAILED, INTERRUPTED, INVALID, OK
from vertumnus.commandline.flags import Flags
from vertumnus.commandline.jobs import Composed
from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus.sweep.check import sweep_problems, told_once
from vertumnus.sweep.table import closing_rows, varied


def checked(jobs: Sequence[Composed]) -> list[sweep.Job]:
    """Return *jobs* as those of a sweep. Raises ConfigError with the problems of all of them."""
    valid = {
        number: sweep.Job(job.words, job.config)
        for number, job in enumerate(jobs, 1)
        if job.config is not None
    }
    found = [(number, problem) for number, job in enumerate(jobs, 1) for problem in job.problems]
    found += sweep_problems(valid) if valid else ()
    if found:
        named = [(f"job {number} ({varied(jobs[number - 1], jobs)})", problem) for number, problem in found]
        raise ConfigError(*told_once(named, len(jobs)))
    return list(valid.values())


def show_plans(jobs: Sequence[sweep.Job], show: Callable[[RunConfig], int]) -> int:
    """Let *show* print the plan of each of *jobs* below what the job changes; return the worst exit code."""
    codes = []
    for number, job in enumerate(jobs, 1):
        if len(jobs) > 1:
            print(f"job {number} of {len(jobs)}: {varied(job, jobs)}", flush=True)
        codes.append(show(job.config))
    return max(codes)


def run(jobs: Sequence[sweep.Job], flags: Flags) -> int:
    """Run *jobs*, close with the table of all, and return the exit code."""
    done = sweep.run_sweep(jobs, flags.overrides, only=flags.only, places=flags.jobs, again=flags.again)
    runs_dir = Path(jobs[0].config.runs_dir)
    print(in_columns(closing_rows(jobs, done.endings, runs_dir)))
    elsewhere = "" if runs_dir == Path("runs") else f" --runs-dir {shlex.quote(str(runs_dir))}"
    print(f"compare: vertumnus compare {done.sweep}{elsewhere}", file=sys.stderr)
    return exit_code(done)


def exit_code(done: sweep.Sweep) -> int:
    """Return the exit code of a sweep that ended as *done*."""
    if done.is_interrupted:
        return INTERRUPTED
    endings = list(done.endings.values())
    if any(ending.status in ("failed", "bad input") for ending in endings):
        return FAILED
    return OK if all(ending.verdict == "VALID" for ending in endings) else INVALID
