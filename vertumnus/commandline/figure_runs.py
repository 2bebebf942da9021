"""The runs behind the paper's tables and figures: the sweeps that they need, and what is missing of each."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hydra.core.config_loader import ConfigLoader

from vertumnus import sweep
from vertumnus.commandline import sweeps
from vertumnus.commandline.exit_codes import INTERRUPTED, worst
from vertumnus.commandline.figure_times import TimeLeft, time_text
from vertumnus.commandline.figure_wanted import Wanted
from vertumnus.commandline.hydra_configs import hydra_configs
from vertumnus.commandline.jobs import Composed, composed_jobs, valid_config
from vertumnus.commandline.messages import tell
from vertumnus.commandline.overrides import job_words
from vertumnus.domain.wording import counted
from vertumnus.live.machine import usable_cores
from vertumnus.report.compare.members import words_by_key


class Swept(NamedTuple):
    """An experiment with the jobs of its sweep that are wanted."""

    experiment: str
    composed: Sequence[Composed]
    jobs: Sequence[sweep.Job]
    words: Sequence[str]

    @property
    def sweep(self) -> str:
        """The id of its sweep."""
        return sweep.id_of(self.jobs)

    @property
    def is_live(self) -> bool:
        """Whether it is executed on this machine's ranks."""
        return any(job.is_live for job in self.jobs)


def wanted_sweeps(wanted: Wanted) -> list[Swept]:
    """Return the sweep of each experiment that is needed, those that are executed first.

    They measure the machine, which is quiet as long as no sweep is simulated beside them. Raises ConfigError
    when a job has no valid config.
    """
    executed = [] if wanted.is_simulated else [name for entry in wanted.entries for name in entry.executed]
    simulated = [name for entry in wanted.entries for name in entry.simulated]
    with hydra_configs() as loader:
        return [_swept(name, wanted, loader) for name in dict.fromkeys([*executed, *simulated])]


def make_runs(found: Sequence[Swept], wanted: Wanted, places: int | None) -> int:
    """Make the runs that are missing, *places* simulated ones at a time, and return the exit code.

    A sweep with failed runs does not keep the next from being run. Raises ConfigError before anything
    starts when a job cannot run.
    """
    missing = _missing(found, wanted.runs_dir)
    to_do = [each for each in found if missing[each.experiment]]
    for each in to_do:
        sweeps.checked(each.composed)
    at_a_time = {each.experiment: _places(each, places) for each in to_do}
    left = TimeLeft(
        {name: (missing[name], count) for name, count in at_a_time.items()},
        executed=[each.experiment for each in to_do if each.is_live],
        is_whole=not wanted.overrides,
    )
    codes = []
    for number, each in enumerate(to_do, 1):
        count = (
            f"{missing[each.experiment]} of {counted(len(each.jobs), 'run')} to do{time_text(left.seconds())}"
        )
        tell(f"figures: sweep {number} of {len(to_do)}, {each.experiment}: {count}")
        ended = sweep.run_sweep(each.jobs, each.words, places=at_a_time[each.experiment])
        codes.append(sweeps.exit_code(ended))
        if codes[-1] == INTERRUPTED:
            break
        left.ended(each.experiment)
    return worst(codes)


def _missing(found: Sequence[Swept], runs_dir: Path) -> dict[str, int]:
    """Return how many jobs of each experiment have no VALID run yet, and tell how many there are in all."""
    there = sweep.runs_there(runs_dir, ((each.jobs, each.words) for each in found))
    missing = {each.experiment: len(each.jobs) - len(ends) for each, ends in zip(found, there, strict=True)}
    count = sum(len(each.jobs) for each in found)
    tell(f"figures: {counted(count, 'run')}, {count - sum(missing.values())} of them there")
    return missing


def _places(swept: Swept, places: int | None) -> int:
    return 1 if swept.is_live else places or usable_cores()


def _swept(experiment: str, wanted: Wanted, loader: ConfigLoader) -> Swept:
    users = [entry for entry in wanted.entries if experiment in (*entry.simulated, *entry.executed)]
    typed = words_by_key(wanted.overrides)
    chosen = [word for entry in users for word in entry.words if word.partition("=")[0] not in typed]
    words = (
        f"+experiment={experiment}",
        f"runs_dir={wanted.runs_dir}",
        *dict.fromkeys(chosen),
        *wanted.overrides,
    )

    def is_needed(job: Sequence[str]) -> bool:
        return wanted.is_full or any(entry.needs(words_by_key(job), typed) for entry in users)

    asked = job_words(words, loader, multirun=True)
    composed = composed_jobs(asked, loader, is_sweep=True, only=wanted.only, keep=is_needed)
    jobs = [sweep.Job(job.words, valid_config(job)) for job in composed]
    return Swept(experiment, composed, jobs, words)
