"""The verb ``compare``: sweeps or runs against one another."""

from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from vertumnus.commandline.exit_codes import OK
from vertumnus.commandline.parser import add_forms, run_parser
from vertumnus.domain.errors import ConfigError
from vertumnus.report.commands import print_csv, print_json
from vertumnus.report.compare.ablation import ablation
from vertumnus.report.compare.comparison import Asked, compare
from vertumnus.report.compare.figure13 import figure13
from vertumnus.report.compare.figure14 import figure14
from vertumnus.report.compare.grid import routing_grid
from vertumnus.report.compare.members import Members, find_members
from vertumnus.report.compare.metrics import METRICS, SHOWN, chosen_metrics
from vertumnus.report.compare.ranking import ranking
from vertumnus.report.compare.show import comparison_json, flat_rows, print_comparison
from vertumnus.report.compare.show_ablation import ablation_json, print_ablation
from vertumnus.report.compare.show_figure13 import figure13_json, print_figure13
from vertumnus.report.compare.show_figure14 import figure14_json, print_figure14
from vertumnus.report.compare.show_grid import grid_json, print_grid
from vertumnus.report.compare.show_ranking import print_ranking, ranking_json
from vertumnus.report.drawing import console_for

SHOWN_LEFT_OUT = 3
"""As many of what was left out are told with a refusal."""


class Figure(NamedTuple):
    """A comparison of its own, beside what the paper has."""

    name: str
    says: str
    find: Callable[[Path, Members], Any]
    show: Callable[[Any, Console], None]
    plain: Callable[[Any], dict[str, Any]]


FIGURES = {
    "7-12": Figure(
        "Figs. 7-12",
        "policies over cells and rates, our margins, the paper's gains beside ours",
        routing_grid,
        print_grid,
        grid_json,
    ),
    "13": Figure(
        "Fig. 13",
        "controllers against fixed compositions, beside the paper's statements",
        figure13,
        print_figure13,
        figure13_json,
    ),
    "14": Figure("Fig. 14", "the prefix manager against none", figure14, print_figure14, figure14_json),
    "ablation": Figure(
        "the ablation",
        "what each switch of policy=vertumnus is worth",
        ablation,
        print_ablation,
        ablation_json,
    ),
    "ranking": Figure(
        "the ranking",
        "the order as simulated beside the order as executed, of a sweep of each",
        ranking,
        print_ranking,
        ranking_json,
    ),
}


def comparing(words: Sequence[str]) -> int:
    """``compare SWEEP|RUN...``: groups of runs, paired by seed and arrivals, with intervals."""
    read = _read(words)
    if read.figure is not None:
        return _figure(read)
    metrics = chosen_metrics(read.metric or SHOWN, read.phase)
    asked = Asked(metrics, read.by, read.baseline, read.phase)
    members = find_members(read.runs_dir, read.runs)
    with _with_left_out(members):
        comparison = compare(read.runs_dir, members, asked)
    match read.form:
        case "json":
            print_json(comparison_json(comparison))
        case "csv":
            print_csv(flat_rows(comparison))
        case _:
            print_comparison(comparison, console_for())
    return OK


def _figure(read: Namespace) -> int:
    ignored = [flag for flag in ("by", "baseline", "metric", "phase") if getattr(read, flag)]
    if ignored:
        raise ConfigError(f"--{ignored[0]}: has no effect with --figure {read.figure}")
    figure = FIGURES[read.figure]
    if read.form == "csv":
        raise ConfigError(f"--csv: {figure.name} is several tables; allowed: --json")
    members = find_members(read.runs_dir, read.runs)
    with _with_left_out(members):
        found = figure.find(read.runs_dir, members)
    if read.form == "json":
        print_json(figure.plain(found))
    else:
        figure.show(found, console_for())
    return OK


@contextmanager
def _with_left_out(members: Members) -> Iterator[None]:
    """Add to a refusal which runs were left out, and why: a sweep that is not done is the usual reason."""
    try:
        yield
    except ConfigError as error:
        shown = [f"left out: {told}" for told in members.left_out[:SHOWN_LEFT_OUT]]
        rest = len(members.left_out) - len(shown)
        raise ConfigError(*error.problems, *shown, *([f"left out: {rest} more"] if rest else [])) from error


def _read(words: Sequence[str]) -> Namespace:
    parser = run_parser("compare", "Compare groups of runs that served the same arrivals.")
    parser.add_argument(
        "runs",
        nargs="*",
        default=["latest"],
        metavar="SWEEP|RUN",
        help="sweep or run ids; default latest sweep",
    )
    parser.add_argument(
        "--by", type=_listed, metavar="KEY,...", help="what to compare; default: the overrides that differ"
    )
    parser.add_argument(
        "--baseline", metavar="GROUP", help="a group, or a part of its name; default the first"
    )
    parser.add_argument(
        "--metric",
        type=_listed,
        metavar="NAME,...",
        help=f"of {', '.join(METRICS)}; default {','.join(SHOWN)}",
    )
    parser.add_argument("--phase", action="store_true", help="each phase of workload=phases by itself, too")
    parser.add_argument(
        "--figure",
        choices=list(FIGURES),
        help="; ".join(f"{key}: {figure.says}" for key, figure in FIGURES.items()),
    )
    add_forms(parser, ("json", "csv"))
    return parser.parse_intermixed_args(list(words))


def _listed(word: str) -> list[str]:
    parts = [part.strip() for part in word.split(",") if part.strip()]
    if not parts:
        raise ArgumentTypeError(f"found {word}, must be one name or more, with commas between")
    return parts
