"""The verb ``figures``: the paper's tables and figures as one report; what is missing for it is run."""

import argparse
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from hydra.core.config_loader import ConfigLoader

from vertumnus import sweep
from vertumnus.commandline import sweeps
from vertumnus.commandline.exit_codes import FAILED, INTERRUPTED, OK
from vertumnus.commandline.flags import positive, run_parser
from vertumnus.commandline.hydra_configs import hydra_configs
from vertumnus.commandline.jobs import Composed, composed_jobs, valid_config
from vertumnus.commandline.overrides import job_words
from vertumnus.domain.errors import ConfigError
from vertumnus.report.compare.members import find_members, words_by_key
from vertumnus.report.paper.catalogue import ENTRIES, NAMES, Entry, chosen
from vertumnus.report.paper.chapter import Runs
from vertumnus.report.paper.section import make_section

EPILOG = """\
  vertumnus figures                                    all of them; again later, only what has changed is run
  vertumnus figures table1 figure13                    some of them
  vertumnus figures figure13 seed=1 workload.requests=2000    a slice, to look at; overrides go to every run
  vertumnus figures --simulated                        without what is executed on this machine's ranks
"""


class Swept(NamedTuple):
    """An experiment with the jobs of the sweep that it declares."""

    experiment: str
    composed: Sequence[Composed]
    jobs: Sequence[sweep.Job]
    words: Sequence[str]


def figures(words: Sequence[str]) -> int:
    """``figures [NAME...] [key=value...]``: make the missing runs, then the report of all."""
    read = _read(words)
    if read.list:
        print("\n".join(f"{entry.name:<12} {entry.title}" for entry in ENTRIES))
        return OK
    names = [word for word in read.words if not _is_override(word)]
    overrides = [word for word in read.words if _is_override(word)]
    entries = chosen(names)
    _require(overrides, read.out)
    with hydra_configs() as loader:
        swept = [
            _swept(name, entries, overrides, read, loader) for name in _experiments(entries, read.simulated)
        ]
    codes = []
    for each in swept:
        codes.append(_run(each, read))
        if codes[-1] == INTERRUPTED:
            return INTERRUPTED
    _write(entries, swept, overrides, read)
    return FAILED if FAILED in codes else max(codes)


def _read(words: Sequence[str]) -> Namespace:
    parser = run_parser("figures", "Redo the paper's tables and figures, and write one illustrated report.")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "words",
        nargs="*",
        metavar="NAME|key=value",
        help=f"of {', '.join(NAMES)}; default all. Overrides as for a run",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("figures"), help="folder of the report; default figures"
    )
    parser.add_argument(
        "--jobs", type=positive, metavar="N", help="simulated runs at a time; default one a core"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="KEY=a,b", help="of the sweeps, as with -m; repeatable"
    )
    parser.add_argument("--simulated", action="store_true", help="leave out what is executed on this machine")
    parser.add_argument(
        "--full",
        action="store_true",
        help="all policies and seeds that the sweeps declare, not only the paper's",
    )
    parser.add_argument("--list", action="store_true", help="list the tables and figures, and stop")
    return parser.parse_intermixed_args(list(words))


def _is_override(word: str) -> bool:
    return "=" in word or word.startswith(("+", "~"))


def _require(overrides: Sequence[str], out: Path) -> None:
    problems = []
    for word in overrides:
        key = word.lstrip("+~").partition("=")[0]
        if key == "experiment":
            problems.append(f"{word}: the figures choose their experiments; name figures: {', '.join(NAMES)}")
        elif key == "runs_dir":
            problems.append(f"{word}: has no effect here; use --runs-dir")
    if out.exists() and not out.is_dir():
        problems.append(f"--out: found {out}, which is no folder")
    if find_spec("matplotlib") is None:
        problems.append("figures: matplotlib is not installed; pip install 'vertumnus[figures]'")
    if problems:
        raise ConfigError(*problems)


def _experiments(entries: Sequence[Entry], only_simulated: bool) -> list[str]:
    """Return the experiments of *entries*, each once, those that are executed last."""
    simulated = [name for entry in entries for name in entry.simulated]
    executed = [] if only_simulated else [name for entry in entries for name in entry.executed]
    return list(dict.fromkeys([*simulated, *executed]))


def _swept(
    experiment: str,
    entries: Sequence[Entry],
    overrides: Sequence[str],
    read: Namespace,
    loader: ConfigLoader,
) -> Swept:
    """Return *experiment* with the jobs that *entries* need, or with --full all that it declares.

    Raises ConfigError when one of them has no valid config.
    """
    words = (f"+experiment={experiment}", f"runs_dir={read.runs_dir}", *overrides)
    users = [entry for entry in entries if experiment in (*entry.simulated, *entry.executed)]
    typed = words_by_key(overrides)

    def is_needed(job: Sequence[str]) -> bool:
        return read.full or any(entry.needs(words_by_key(job), typed) for entry in users)

    composed = composed_jobs(
        job_words(words, loader, multirun=True), loader, is_sweep=True, only=read.only, keep=is_needed
    )
    jobs = [sweep.Job(job.words, valid_config(job)) for job in composed]
    return Swept(experiment, composed, jobs, words)


def _run(swept: Swept, read: Namespace) -> int:
    """Run the jobs that have no VALID run yet and return the exit code."""
    done = sweep.runs_there(swept.jobs, swept.words)
    if len(done) == len(swept.jobs):
        return OK
    sweeps.checked(swept.composed)
    is_live = any(job.is_live for job in swept.jobs)
    ended = sweep.run_sweep(swept.jobs, swept.words, places=1 if is_live else read.jobs)
    return sweeps.exit_code(ended)


def _write(
    entries: Sequence[Entry], swept: Sequence[Swept], overrides: Sequence[str], read: Namespace
) -> None:
    from vertumnus.report.paper.write import write_report  # here: it imports matplotlib

    members = {each.experiment: find_members(read.runs_dir, [sweep.id_of(each.jobs)]) for each in swept}
    runs = Runs(read.runs_dir, members)
    sections = [make_section(entry, runs, overrides) for entry in entries]
    narrowed = [*overrides, *(f"--only {word}" for word in read.only)]
    remarks = [f"A slice, made with {' '.join(narrowed)}: no basis for conclusions."] if narrowed else []
    for page in write_report(read.out, sections, remarks):
        print(page)
    if any(section.left_out for section in sections):
        print("some runs are left out; the report names them", file=sys.stderr)
