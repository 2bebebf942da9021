"""The verb ``trace``: look at trace files, turn them into one another, fetch and make them."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.commandline.parser import Parser
from vertumnus.commandline.trace_download import fetch
from vertumnus.commandline.trace_making import capture, convert
from vertumnus.commandline.trace_source import READING, Source, source_of
from vertumnus.config import did_you_mean
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.report.output_file import drawing_problems
from vertumnus.report.trace_text import trace_text
from vertumnus.trace.details import TraceDetails, details_of
from vertumnus.trace.formats.reader import MOST_PROBLEMS
from vertumnus.trace.load import Passing, pass_rows
from vertumnus.trace.remarks import remarks
from vertumnus.trace.stats import columns_of

LINT_PROBLEMS = 1_000
"""As many are listed; behind them a file is not read on."""

USAGE = """\
usage: vertumnus trace VERB ...

  lint FILE [key=value ...]             is every row as its format wants it? names file, line, found, expected
  stats FILE [key=value ...]            numbers, rate, mix of lengths, reuse; --json, --figure FILE
  convert FILE OUT [key=value ...]      to .jsonl (Mooncake's format) or .parquet; .gz packs
  download [NAME] [key=value ...]       a published trace, by the name of its workload
  capture LOG OUT [key=value ...]       a log of prompts to a trace of salted hashes

A FILE's format is read off its first line. vertumnus trace VERB --help says more.
"""


def trace(words: Sequence[str]) -> int:
    """``trace VERB ...``: do what the first word says."""
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE, end="", file=sys.stdout if words else sys.stderr)
        return OK if words else BAD_INPUT
    if words[0] not in VERBS:
        raise ConfigError(f"trace {words[0]}: no such verb{did_you_mean(words[0], VERBS)}")
    return VERBS[words[0]](words[1:])


def lint(words: Sequence[str]) -> int:
    """``trace lint FILE``: print every problem of a file, then what to mind; 2 when there is any problem."""
    parser = Parser(prog="vertumnus trace lint", description="Is every row as its format wants it?")
    parser.add_argument("source", nargs="+", metavar="FILE", help=f"files, {READING}")
    source = source_of(parser.parse_intermixed_args(list(words)).source, {"bad_rows": "error"})
    try:
        details, notes, name = _looked_at(source, LINT_PROBLEMS)
    except ConfigError as error:
        print("\n".join(error.problems))
        print(counted(len(error.problems), "problem"), file=sys.stderr)
        return BAD_INPUT
    print(f"{name}: {counted(details.requests, 'row')}, no problem")
    for note in notes:
        print(f"note: {note}")
    return OK


def stats(words: Sequence[str]) -> int:
    """``trace stats FILE``: the trace in numbers and shape."""
    parser = Parser(prog="vertumnus trace stats", description="A trace in numbers, shape and warnings.")
    parser.add_argument("source", nargs="+", metavar="FILE", help=f"files, {READING}")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw it too; .png, .svg or .pdf")
    parser.add_argument("--force", action="store_true", help="replace the file of --figure")
    read = parser.parse_intermixed_args(list(words))
    if read.force and not read.figure:
        parser.error("--force: has no effect without --figure")
    draw = _drawing(read.figure, replace=read.force) if read.figure else None
    details, notes, name = _looked_at(source_of(read.source, {"empty_outputs": "drop"}))
    if draw is not None:
        draw(name, details)
    if read.json:
        document = {"name": name, **msgspec.to_builtins(details), "notes": notes}
        print(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        print(trace_text(name, details, notes))
    return OK


def _looked_at(source: Source, most_problems: int = MOST_PROBLEMS) -> tuple[TraceDetails, list[str], str]:
    """Read the whole of *source*; return its shape, what to mind, and what was read."""
    workload = source.workload

    def look(passing: Passing) -> tuple[TraceDetails, list[str], str]:
        details = details_of(columns_of(passing, workload.scaled_block_tokens))
        return details, remarks(details, passing.skipped, passing.empty), passing.description()

    return pass_rows(workload, source.seed, look, most_problems)


def _drawing(path: Path, *, replace: bool) -> Callable[[str, TraceDetails], None]:
    """Return what draws to *path*. Raises ConfigError when nothing could be drawn there."""
    problems = list(drawing_problems(path, replace=replace))
    if problems:
        raise ConfigError(*problems)
    from vertumnus.report.trace_figure import draw_trace

    return lambda name, details: draw_trace(path, name, details)


VERBS: Mapping[str, Callable[[Sequence[str]], int]] = {
    "lint": lint,
    "stats": stats,
    "convert": convert,
    "download": fetch,
    "capture": capture,
}
