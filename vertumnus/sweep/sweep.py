"""One sweep from its jobs to the closing table."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from vertumnus.config import plain_config
from vertumnus.domain.wording import counted
from vertumnus.live.machine import usable_cores
from vertumnus.records.sweeps import SweepRecord, sweep_id, write_sweep
from vertumnus.report.drawing import console_for
from vertumnus.report.store import rebuild_catalog
from vertumnus.run.interrupts import interrupts_held, one_interrupt
from vertumnus.run.profiles import policy_warning
from vertumnus.sweep.done import ValidRuns
from vertumnus.sweep.job import Ending, Job
from vertumnus.sweep.memory import Memory
from vertumnus.sweep.messages import Assignment
from vertumnus.sweep.pool import JobPool, Start
from vertumnus.sweep.process import Heard, JobProcess
from vertumnus.sweep.progress import SweepProgress
from vertumnus.sweep.table import varied


class Sweep(NamedTuple):
    """A sweep that has ended, by itself or from outside."""

    sweep: str
    endings: Mapping[int, Ending]
    """By job number from 1; a job that had not started has none."""
    is_interrupted: bool


def run_sweep(
    jobs: Sequence[Job],
    words: Sequence[str],
    *,
    only: Sequence[str] = (),
    places: int | None = None,
    again: bool = False,
) -> Sweep:
    """Run those of *jobs* that have no VALID run yet, or with *again* all; narration goes to stderr.

    *words* are the overrides as typed, *only* what of their jobs was asked for. *places* jobs run at a
    time: by default one where a job is executed, else one for each core. Raises ConfigError before
    anything starts when the folder of runs cannot be written.
    """
    console = console_for(sys.stderr)
    runs_dir = Path(jobs[0].config.runs_dir)
    record = _keep(jobs, words, only, runs_dir)
    numbered = dict(enumerate(jobs, 1))
    valid = ValidRuns(runs_dir)
    done = {} if again else valid.endings(record.sweep, numbered)
    to_do = {number: job for number, job in _seed_by_seed(numbered) if number not in done}
    labels = {number: varied(job, jobs) for number, job in numbered.items()}
    places = places or _default_places(jobs)
    with one_interrupt(), SweepProgress(console, labels, len(to_do)) as progress:
        progress.say(_opening(record.sweep, len(jobs), len(done), places))
        if places > 1 and any(job.is_live for job in to_do.values()):
            progress.say(
                "executed jobs of one seed run side by side: their times are those of a shared machine"
            )
        if not again:
            for remark in _of_other_sweeps(*valid.elsewhere(record.sweep, to_do.values())):
                progress.say(remark)
        for warning in dict.fromkeys(policy_warning(job.config) for job in to_do.values()):
            if warning is not None:
                progress.say(warning)
        starting = _starting(to_do, record.sweep)
        pool = JobPool(to_do, starting, places, progress, Memory(), _executed_pairs(to_do))
        is_whole = pool.run()
        with interrupts_held():
            rebuild_catalog(runs_dir)
    return Sweep(record.sweep, {**done, **pool.endings}, not is_whole)


def id_of(jobs: Sequence[Job]) -> str:
    """Return the id of the sweep of *jobs*."""
    return sweep_id(jobs[0].config.name, [job.record for job in jobs])


def runs_there(
    runs_dir: Path, asked: Iterable[tuple[Sequence[Job], Sequence[str]]]
) -> list[Mapping[int, Ending]]:
    """Return of each sweep *asked*, jobs and words, the endings of its jobs that have a VALID run already.

    Jobs are numbered from 1. The sweeps are kept, so that they can be compared. Raises ConfigError when that
    is not possible.
    """
    valid = ValidRuns(runs_dir)
    return [
        valid.endings(_keep(jobs, words, (), runs_dir).sweep, dict(enumerate(jobs, 1)))
        for jobs, words in asked
    ]


def _seed_by_seed(jobs: Mapping[int, Job]) -> list[tuple[int, Job]]:
    """Return *jobs* so that those to be paired run near one another, whatever the machine does meanwhile."""
    return sorted(jobs.items(), key=lambda item: (item[1].config.seed, item[0]))


def _executed_pairs(jobs: Mapping[int, Job]) -> dict[int, int] | None:
    """Return each job's seed where jobs are executed; None where times do not depend on the machine."""
    if not any(job.is_live for job in jobs.values()):
        return None
    return {number: job.config.seed for number, job in jobs.items()}


def _starting(jobs: Mapping[int, Job], sweep: str) -> Start:
    def start(number: int, heard: "SimpleQueue[Heard]") -> JobProcess:
        job = jobs[number]
        assignment = Assignment(
            config=plain_config(job.config),
            runs_dir=job.config.runs_dir,
            words=job.words,
            sweep=sweep,
            code_hash=job.code_hash,
        )
        return JobProcess(number, assignment, heard, one_thread=not job.is_live)

    return start


def _keep(jobs: Sequence[Job], words: Sequence[str], only: Sequence[str], runs_dir: Path) -> SweepRecord:
    kept = tuple(job.record for job in jobs)
    record = SweepRecord(sweep=id_of(jobs), words=tuple(words), jobs=kept, only=tuple(only))
    write_sweep(runs_dir, record)
    return record


def _default_places(jobs: Sequence[Job]) -> int:
    return 1 if any(job.is_live for job in jobs) else usable_cores()


def _of_other_sweeps(jobs: int, sweeps: Sequence[str]) -> Iterator[str]:
    """Yield why executed *jobs* are run though runs of *sweeps* have their configuration: times drift."""
    if jobs:
        yield (
            f"runs of {jobs} of them are in {', '.join(sweeps)}, but executed times are compared within one "
            "sweep: measured again"
        )


def _opening(sweep: str, jobs: int, done: int, places: int) -> str:
    to_do = jobs - done
    known = f", {done} of them done before" if done else ""
    at_once = f"; {min(places, to_do)} at a time" if to_do > 1 else ""
    return f"sweep {sweep}: {counted(jobs, 'job')}{known}{at_once}"
