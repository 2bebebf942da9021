"""The verbs that read results: ``report``, ``sql``, ``runs``."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from vertumnus.commandline.columns import in_columns
from vertumnus.commandline.exit_codes import OK
from vertumnus.commandline.parser import RUN, Parser, add_forms, run_parser
from vertumnus.config import nearest
from vertumnus.domain.errors import ConfigError
from vertumnus.records.run_dir import may_name_run
from vertumnus.report import commands
from vertumnus.report.figures import FIGURES
from vertumnus.report.reports import purpose_of, report_names


def report(words: Sequence[str]) -> int:
    """``report [NAME] [RUN]``: show a report of a run; a lone word is a report's name or a run."""
    parser = _parser("report", "Show a report of one run.", forms=("json", "csv", "parquet"))
    parser.add_argument(
        "name",
        nargs="?",
        help=f"one of {', '.join(report_names())}; default summary; --list tells what they show",
    )
    parser.add_argument("run", nargs="?", help=f"{RUN}; default latest")
    parser.add_argument("--list", action="store_true", help="list the reports with what they show, and stop")
    parser.add_argument(
        "--figure",
        type=Path,
        metavar="FILE",
        help=f"draw it, for {' or '.join(FIGURES)}, into a file named *.png, *.svg or *.pdf",
    )
    parser.add_argument(
        "--perfetto",
        type=Path,
        metavar="FILE",
        help="write the workers' timeline as a Chrome trace, *.json or *.json.gz, for ui.perfetto.dev",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace the file of --figure or --perfetto if it is there already",
    )
    read = parser.parse_intermixed_args(list(words))
    if read.list:
        names = report_names() if read.name is None else [read.name]
        print(in_columns([("report", "what it shows"), *((name, purpose_of(name)) for name in names)]))
        return OK
    name, run = read.name or "summary", read.run or "latest"
    if read.run is None and name not in report_names():
        if near := nearest(name, report_names()):
            raise ConfigError(f"report {name}: no such report; did you mean {near}?")
        if not may_name_run(name):
            raise ConfigError(
                f"report {name}: neither a report ({', '.join(report_names())}) nor a part of a run id"
            )
        name, run = "summary", name
    if run in report_names() and name not in report_names():
        raise ConfigError(f"report {name} {run}: the report comes first: vertumnus report {run} {name}")
    _require_one_output(read)
    if read.perfetto is not None:
        if name != "summary":
            raise ConfigError(
                f"--perfetto: writes the run's timeline, report {name} has no effect; leave it out"
            )
        commands.perfetto(read.runs_dir, run, read.perfetto, replace=read.force)
    else:
        commands.report(read.runs_dir, name, run, _form(read), read.figure, replace=read.force)
    return OK


def _require_one_output(read: Namespace) -> None:
    files = [flag for flag in ("figure", "perfetto") if getattr(read, flag) is not None]
    if len(files) > 1:
        raise ConfigError("--figure and --perfetto: each writes a file of its own; leave one out")
    if files and _form(read) != "text":
        raise ConfigError(f"--{files[0]}: writes a file, --{_form(read)} would have no effect; leave one out")
    if read.force and not files:
        raise ConfigError("--force: has no effect without --figure or --perfetto")


def sql(words: Sequence[str]) -> int:
    """``sql "SELECT ..."``: answer one statement over the tables of all ended runs, or tell their columns."""
    forms = ("json", "csv", "parquet", "markdown")
    parser = _parser("sql", "Answer one SELECT over the tables of all runs.", forms)
    parser.add_argument(
        "statement", nargs="?", help='for example "SELECT run_id, avg(ttft_s) FROM requests GROUP BY 1"'
    )
    parser.add_argument("--schema", action="store_true", help="show every table, its columns, what they mean")
    read = parser.parse_intermixed_args(list(words))
    if read.schema == (read.statement is not None):
        parser.error(
            "a statement or --schema is required" if not read.schema else "--schema: takes no statement"
        )
    if read.form == "markdown" and not read.schema:
        parser.error("--markdown: has no effect without --schema")
    if read.schema:
        commands.schema(read.form)
    else:
        commands.sql(read.runs_dir, read.statement, _form(read))
    return OK


def runs(words: Sequence[str]) -> int:
    """``runs``: list every run, the unfinished ones too."""
    parser = _parser("runs", "List every run, oldest first.", forms=("json", "csv"))
    read = parser.parse_intermixed_args(list(words))
    commands.runs(read.runs_dir, _form(read))
    return OK


def _parser(verb: str, says: str, forms: Sequence[str]) -> Parser:
    parser = run_parser(verb, says)
    add_forms(parser, forms)
    return parser


def _form(read: Namespace) -> commands.Form:
    form: commands.Form = read.form
    return form
