"""The verbs that read results: data goes to stdout, narration to stderr."""

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, TypeAlias

import msgspec

from vertumnus.domain.errors import ConfigError
from vertumnus.records.finish import salvage
from vertumnus.records.run_dir import Listing, list_runs
from vertumnus.report.chosen_run import chosen_run
from vertumnus.report.drawing import NO_DATA, cell, console_for, grid
from vertumnus.report.figures import draw_report, require_drawable
from vertumnus.report.perfetto import require_writable, write_trace
from vertumnus.report.reports import notes_of, report_sql
from vertumnus.report.run_report import load_report, report_json
from vertumnus.report.schema import markdown, schema_rows
from vertumnus.report.store import Answer, query, query_parquet
from vertumnus.report.summary import print_summary

Form: TypeAlias = Literal["text", "json", "csv", "parquet"]
"""How data is written to stdout."""

UPRIGHT_COLUMNS = 8
"""A single row with more columns than this is shown as one line for each column."""

NOTES_WIDTH = 78
"""Characters a line of what is said below a report."""


def report(
    runs_dir: Path,
    name: str = "summary",
    run: str = "latest",
    form: Form = "text",
    figure: Path | None = None,
    *,
    replace: bool = False,
) -> None:
    """Show report *name* of *run*, or draw it into *figure*; a killed run's tables are rebuilt first.

    A file that is there is only *replace*d when that is asked for.

    Raises ConfigError when there is no such report or run, the run is still going, or there is no picture.
    """
    sql_text = report_sql(name)
    if figure is not None:
        require_drawable(name, figure, replace=replace)
    run_id = _readable_run(runs_dir, run).run.run_id
    if figure is not None:
        draw_report(runs_dir, run_id, figure)
        print(figure)
    elif name == "summary" and form == "text":
        print_summary(load_report(runs_dir, run_id), console_for())
    elif name == "summary" and form == "json":
        print_json(report_json(load_report(runs_dir, run_id)))
    else:
        _show(runs_dir, sql_text, form, run_id, notes_of(name))


def perfetto(runs_dir: Path, run: str, file: Path, *, replace: bool = False) -> None:
    """Write the timeline of the workers of *run* as a Chrome trace to *file*; raises ConfigError."""
    require_writable(file, replace=replace)
    write_trace(runs_dir, _readable_run(runs_dir, run).run.run_id, file)
    print(file)


def sql(runs_dir: Path, statement: str, form: Form = "text") -> None:
    """Answer one SELECT statement over all ended runs; raises ConfigError."""
    _show(runs_dir, statement, form)


def schema(form: Form | Literal["markdown"] = "text") -> None:
    """Show every table with its columns and what they mean."""
    rows = schema_rows()
    if form == "markdown":
        print(markdown(), end="")
    elif form == "json":
        print_json(rows)
    elif form == "csv":
        print_csv(rows)
    elif form == "parquet":
        raise ConfigError("--schema: found --parquet, allowed: --json, --csv, --markdown")
    else:
        headings = ("table", "column", "type", "meaning")
        console_for().print(grid("", headings, [list(row.values()) for row in rows], left=True))


def runs(runs_dir: Path, form: Form = "text") -> None:
    """List every run, oldest first, the unfinished ones too; raises ConfigError."""
    if form == "parquet":
        raise ConfigError('runs: found --parquet, allowed: --json, --csv; or: sql "FROM runs" --parquet')
    columns = ("run_id", "name", "status", "verdict", "label", "path")
    rows = [
        (each.run.run_id, each.name, each.status, each.verdict, each.label, str(each.run.path))
        for each in list_runs(runs_dir)
    ]
    _print_answer(Answer(columns, rows), form)


def _readable_run(runs_dir: Path, wanted: str) -> Listing:
    listing = chosen_run(runs_dir, wanted)
    if listing.status == "running":
        raise ConfigError(f"run {listing.run.run_id}: is still running; its report comes with its end")
    if listing.status == "unfinished":
        print(f"run {listing.run.run_id} was killed; rebuilding its tables from its log", file=sys.stderr)
        salvage(listing.run)
    return listing


def _show(
    runs_dir: Path, statement: str, form: Form, run_id: str | None = None, notes: str | None = None
) -> None:
    parameters, only = (None, None) if run_id is None else ({"run_id": run_id}, [run_id])
    if form == "parquet":
        if sys.stdout.isatty():
            raise ConfigError("--parquet: found a terminal, needs a file: add > NAME.parquet")
        sys.stdout.buffer.write(query_parquet(runs_dir, statement, parameters, only=only))
    else:
        answer = query(runs_dir, statement, parameters, only=only)
        _print_answer(answer, form)
        if notes and answer.rows and form == "text":
            print(fill(notes, NOTES_WIDTH, break_long_words=False))


def print_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write *rows*, which have the same keys, to stdout as CSV."""
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(rows[0] if rows else ())
    lines.writerows(row.values() for row in rows)


def _print_answer(answer: Answer, form: Form) -> None:
    if form == "json":
        print_json(answer.dicts())
    elif form == "csv":
        lines = csv.writer(sys.stdout, lineterminator="\n")
        lines.writerow(answer.columns)
        lines.writerows(answer.rows)
    elif len(answer.rows) == 1 and len(answer.columns) > UPRIGHT_COLUMNS:
        upright = zip(answer.columns, map(cell, answer.rows[0]), strict=True)
        console_for().print(grid("", ("column", "value"), list(upright)))
    elif answer.rows:
        console_for().print(grid("", answer.columns, [[cell(v) for v in row] for row in answer.rows]))
    else:
        print(NO_DATA, file=sys.stderr)


def print_json(value: Any) -> None:
    """Write *value* to stdout as JSON."""
    encoded = msgspec.json.encode(value, enc_hook=str)
    print(msgspec.json.format(encoded, indent=2).decode())
