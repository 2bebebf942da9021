"""The verb ``figures``: the paper's tables and figures as one report; what is missing for it is run."""

import argparse
from argparse import Namespace
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from vertumnus.commandline.columns import in_columns
from vertumnus.commandline.exit_codes import OK
from vertumnus.commandline.figure_kept import Kept
from vertumnus.commandline.figure_sources import given
from vertumnus.commandline.figure_wanted import Wanted, chosen
from vertumnus.commandline.flags import only_word
from vertumnus.commandline.messages import tell
from vertumnus.commandline.parser import folder, positive, run_parser
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.extras import installing
from vertumnus.report.paper.catalogue import NAMES, Entry

EPILOG = """\
  vertumnus figures                                    all of them; again later, only what has changed
  vertumnus figures table1 figure13                    some of them
  vertumnus figures figure13 seed=1 workload.requests=2000    a slice, to look at; overrides go to every run
  vertumnus figures --simulated                        without what is executed on this machine's ranks
"""


def figures(words: Sequence[str]) -> int:
    """``figures [NAME...] [key=value...]``: make the missing runs, then the report of all."""
    read = _read(words)
    entries = chosen([word for word in read.words if not _is_override(word)])
    if read.list:
        print(in_columns([("name", "what", "simulated", "executed here"), *map(_listed, entries)]))
        return OK
    overrides = [word for word in read.words if _is_override(word)]
    wanted = Wanted(entries, overrides, read.runs_dir, read.only, read.full, read.simulated)
    _require(overrides)
    sources = given(wanted)
    kept = None if read.redraw or sources is None else Kept.find(read.out)
    if kept is not None and sources is not None and _still_holds(kept, sources, wanted.runs_dir):
        return OK
    from vertumnus.commandline.figure_report import make_report  # here: it imports Hydra and matplotlib

    return make_report(wanted, read.out, read.jobs, sources)


def _still_holds(kept: Kept, sources: Mapping[str, str], runs_dir: Path) -> bool:
    """Return whether the report *kept* is what a pass would make that begins from *sources*, and tell."""
    if not kept.is_of(sources):
        return False
    changed = kept.changed(sources, runs_dir)
    if changed:
        tell(f"figures: changed since {_since(kept)}: {', '.join(changed)}")
        return False
    tell(f"figures: nothing has changed since {_since(kept)}; --redraw makes the report again")
    for page in kept.pages:
        print(page)
    for remark in kept.remarks:
        tell(remark)
    return True


def _since(kept: Kept) -> str:
    return f"{kept.made_at:%Y-%m-%d %H:%M}"


def _read(words: Sequence[str]) -> Namespace:
    parser = run_parser(
        "figures", "Redo the paper's tables and figures, and write one illustrated report.", folder
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument(
        "words",
        nargs="*",
        metavar="NAME|key=value",
        help=f"of {', '.join(NAMES)}; default all. Overrides as for a run",
    )
    parser.add_argument(
        "--out",
        type=folder,
        default=Path("figures"),
        metavar="FOLDER",
        help="folder of the report; default figures",
    )
    parser.add_argument(
        "--jobs", type=positive, metavar="N", help="simulated runs at a time; default one a core"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        type=only_word,
        metavar="KEY=a,b",
        help="of the sweeps: the jobs that have one of these values; repeatable",
    )
    parser.add_argument("--simulated", action="store_true", help="leave out what is executed on this machine")
    parser.add_argument(
        "--full",
        action="store_true",
        help="all policies and seeds that the sweeps declare, not only the paper's",
    )
    parser.add_argument(
        "--redraw",
        action="store_true",
        help="make the report again, though nothing that it is made of has changed",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="list the tables and figures with the experiments that they are made of, and stop",
    )
    return parser.parse_intermixed_args(list(words))


def _listed(entry: Entry) -> tuple[str, ...]:
    return entry.name, entry.title, ", ".join(entry.simulated), ", ".join(entry.executed)


def _is_override(word: str) -> bool:
    return "=" in word or word.startswith(("+", "~"))


def _require(overrides: Sequence[str]) -> None:
    problems = []
    for word in overrides:
        key = word.lstrip("+~").partition("=")[0]
        if key == "experiment":
            problems.append(f"{word}: the figures choose their experiments; name figures: {', '.join(NAMES)}")
        elif key == "runs_dir":
            problems.append(f"{word}: has no effect here; use --runs-dir")
    if find_spec("matplotlib") is None:
        problems.append(f"figures: matplotlib is not installed; {installing('figures')}")
    if problems:
        raise ConfigError(*problems)
