"""The verb ``figures``: the paper's tables and figures as one report; what is missing for it is run."""

import argparse
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from vertumnus import sweep
from vertumnus.commandline.exit_codes import FAILED, INTERRUPTED, OK, worst
from vertumnus.commandline.figure_runs import Swept, Wanted, make_runs, wanted_sweeps
from vertumnus.commandline.flags import positive, run_parser
from vertumnus.domain.errors import ConfigError
from vertumnus.report.compare.members import members_by
from vertumnus.report.paper.catalogue import ENTRIES, NAMES, chosen
from vertumnus.report.paper.chapter import Runs

EPILOG = """\
  vertumnus figures                                    all of them; again later, only what has changed is run
  vertumnus figures table1 figure13                    some of them
  vertumnus figures figure13 seed=1 workload.requests=2000    a slice, to look at; overrides go to every run
  vertumnus figures --simulated                        without what is executed on this machine's ranks
"""


def figures(words: Sequence[str]) -> int:
    """``figures [NAME...] [key=value...]``: make the missing runs, then the report of all."""
    read = _read(words)
    if read.list:
        print("\n".join(f"{entry.name:<12} {entry.title}" for entry in ENTRIES))
        return OK
    names = [word for word in read.words if not _is_override(word)]
    overrides = [word for word in read.words if _is_override(word)]
    wanted = Wanted(chosen(names), overrides, read.runs_dir, read.only, read.full, read.simulated)
    _require(overrides, read.out)
    swept = wanted_sweeps(wanted)
    code = make_runs(swept, wanted, read.jobs)
    if code == INTERRUPTED:
        return code
    return worst([code, _write(swept, wanted, read.out)])


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


def _write(swept: Sequence[Swept], wanted: Wanted, out: Path) -> int:
    from vertumnus.report.paper.write import illustrated, write_report  # here: it imports matplotlib

    sweeps = {each.experiment: [sweep.id_of(each.jobs)] for each in swept}
    runs = Runs(wanted.runs_dir, members_by(wanted.runs_dir, sweeps))
    sections = [illustrated(entry, runs, wanted.overrides) for entry in wanted.entries]
    for page in write_report(out, sections, _remarks(wanted)):
        print(page)
    if any(each.section.left_out for each in sections):
        print("some runs are left out; the report names them", file=sys.stderr)
    failures = [each.section for each in sections if each.section.failure]
    for section in failures:
        print(f"{section.entry.name} could not be made: {section.failure}", file=sys.stderr)
    return FAILED if failures else OK


def _remarks(wanted: Wanted) -> list[str]:
    narrowed = [*wanted.overrides, *(f"--only {word}" for word in wanted.only)]
    return [f"A slice, made with {' '.join(narrowed)}: no basis for conclusions."] if narrowed else []
