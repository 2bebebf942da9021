"""The verb ``rerun``: a stored run once more, and whether the same came of it."""

import sys
from collections.abc import Sequence
from pathlib import Path

from vertumnus.commandline.auditing import record_text
from vertumnus.commandline.exit_codes import INVALID, OK
from vertumnus.commandline.jobs import exit_code
from vertumnus.commandline.parser import RUN, run_parser
from vertumnus.domain.wording import counted
from vertumnus.records.run_dir import RunDir
from vertumnus.report.chosen_run import chosen_run
from vertumnus.report.store import query

NUMBERS = "SELECT run_id, ttft_mean_s, ttft_p90_s, slo_attainment, code_hash, execution FROM runs"


def rerun(words: Sequence[str]) -> int:
    """``rerun [RUN]``: run it again and compare; INVALID where it should be the same and is not."""
    parser = run_parser("rerun", "Run a stored run's configuration and seed again: is the result the same?")
    parser.add_argument("run", nargs="?", default="latest", help=f"{RUN}; default latest")
    read = parser.parse_intermixed_args(list(words))
    from vertumnus.run.rerun import operators_actions, run_again  # here: they bring the whole core

    run = chosen_run(read.runs_dir, read.run).run
    if actions := operators_actions(run):
        print(f"not repeated: {counted(actions, 'action')} of operators in {run.run_id}", file=sys.stderr)
    recorded = run_again(run, read.runs_dir)
    code = exit_code(recorded.end.status, recorded.end.verdict)
    print(f"run {run.run_id} again: run {recorded.run.run_id}, {recorded.end.status} {recorded.end.verdict}")
    if recorded.end.status != "finished":
        return code
    return _compared(read.runs_dir, run, recorded.run) or code


def _compared(runs_dir: Path, run: RunDir, again: RunDir) -> int:
    """Print how *again* compares with *run* and return the exit code."""
    from vertumnus.run.rerun import likeness

    ids = (run.run_id, again.run_id)
    rows = {row["run_id"]: row for row in query(runs_dir, NUMBERS, only=ids).dicts()}
    if not all(run_id in rows for run_id in ids):
        print(f"run {run.run_id} has no tables to compare with (vertumnus salvage makes them)")
        return OK
    first, second = (rows[run_id] for run_id in ids)
    print(f"code: {'the same' if first['code_hash'] == second['code_hash'] else 'another than then'}")
    if first["execution"] == "executed":
        print(_numbers(first, second))
        return OK
    found = likeness(run, again)
    if found.difference is None:
        print(f"log: the same {counted(found.records, 'record')}")
    else:
        was, now = record_text(found.difference.recorded), record_text(found.difference.replayed)
        print(f"log: record {found.difference.place} differs; first {was}, again {now}")
    print(f"tables: {', '.join(found.tables) + ' differ' if found.tables else 'the same'}")
    print("IDENTICAL" if found.is_identical else f"NOT IDENTICAL; {_numbers(first, second)}")
    return OK if found.is_identical else INVALID


def _numbers(first: dict[str, float | None], second: dict[str, float | None]) -> str:
    told = []
    for title, column, scale, unit in (
        ("mean TTFT", "ttft_mean_s", 1.0, "s"),
        ("P90", "ttft_p90_s", 1.0, "s"),
        ("attained", "slo_attainment", 100.0, "%"),
    ):
        was, now = first[column], second[column]
        if was is not None and now is not None:
            told.append(f"{title} {scale * was:.3f} {unit}, again {scale * now:.3f} {unit}")
    return "; ".join(told) or "nothing was measured"
