"""The verb ``compare``: sweeps or runs against one another."""

from argparse import Namespace
from collections.abc import Sequence

from vertumnus.commandline.exit_codes import OK
from vertumnus.commandline.flags import run_parser
from vertumnus.domain.errors import ConfigError
from vertumnus.report.commands import print_csv, print_json
from vertumnus.report.compare.comparison import Asked, compare
from vertumnus.report.compare.figure13 import figure13
from vertumnus.report.compare.figure14 import figure14
from vertumnus.report.compare.members import find_members
from vertumnus.report.compare.metrics import METRICS, SHOWN, chosen_metrics
from vertumnus.report.compare.show import comparison_json, flat_rows, print_comparison
from vertumnus.report.compare.show_figure13 import figure13_json, print_figure13
from vertumnus.report.compare.show_figure14 import figure14_json, print_figure14
from vertumnus.report.drawing import console_for


def comparing(words: Sequence[str]) -> int:
    """``compare SWEEP|RUN...``: groups of runs, paired by seed and arrivals, with intervals."""
    read = _read(words)
    if read.figure is not None:
        return _figure(read)
    metrics = chosen_metrics(read.metric or SHOWN, read.phase)
    asked = Asked(metrics, read.by, read.baseline, read.phase)
    comparison = compare(read.runs_dir, find_members(read.runs_dir, read.runs), asked)
    match read.form:
        case "json":
            print_json(comparison_json(comparison))
        case "csv":
            print_csv(flat_rows(comparison))
        case _:
            print_comparison(comparison, console_for())
    return OK


def _figure(read: Namespace) -> int:
    """Print the figure that --figure names."""
    ignored = [flag for flag in ("by", "baseline", "metric", "phase") if getattr(read, flag)]
    if ignored:
        raise ConfigError(f"--{ignored[0]}: has no effect with --figure {read.figure}")
    if read.form == "csv":
        raise ConfigError(f"--csv: Fig. {read.figure} is several tables; allowed: --json")
    members = find_members(read.runs_dir, read.runs)
    as_json = read.form == "json"
    match read.figure:
        case "13":
            composition = figure13(read.runs_dir, members)
            print_json(figure13_json(composition)) if as_json else print_figure13(composition, console_for())
        case "14":
            manager = figure14(read.runs_dir, members)
            print_json(figure14_json(manager)) if as_json else print_figure14(manager, console_for())
    return OK


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
        choices=["13", "14"],
        help="beside the paper's statements: 13, controllers against fixed compositions; 14, the prefix "
        "manager against none",
    )
    forms = parser.add_mutually_exclusive_group()
    for form in ("json", "csv"):
        forms.add_argument(f"--{form}", dest="form", action="store_const", const=form, default="text")
    return parser.parse_args(list(words))


def _listed(word: str) -> list[str]:
    return [part.strip() for part in word.split(",") if part.strip()]
