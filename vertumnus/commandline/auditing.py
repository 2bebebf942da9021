"""The verbs that look after stored runs: ``audit``, ``salvage``."""

import sys
from collections.abc import Sequence

from vertumnus.commandline.exit_codes import BAD_INPUT, FAILED, INVALID, OK
from vertumnus.commandline.parser import RUN, run_parser
from vertumnus.domain.codec import Record, to_json_line
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.records.finish import salvage as salvage_run
from vertumnus.records.run_dir import find_run, list_runs
from vertumnus.report.chosen_run import chosen_run
from vertumnus.serving.replay import Difference, ReplayStopped


def audit(words: Sequence[str]) -> int:
    """``audit [RUN]``: replay a run's log twice and check the books at its end."""
    parser = run_parser("audit", "Replay a run's log: the same decisions, and books that balance?")
    parser.add_argument("run", nargs="?", default="latest", help=f"{RUN}; default latest")
    read = parser.parse_intermixed_args(list(words))
    from vertumnus.run.audit import audit_run  # here: it brings the whole core

    run = chosen_run(read.runs_dir, read.run).run
    found = audit_run(run)
    cut = ", the end is cut off" if found.truncated else ""
    print(f"run {run.run_id}: {counted(found.records, 'record')}{cut}")
    print(f"facts through a fresh control plane: {_verdict(found.facts)}")
    print(f"inputs through a fresh fleet and control plane: {_verdict(found.inputs)}")
    still = f", still open: {counted(found.open_requests, 'request')}" if found.open_requests else ""
    print("books: " + ("; ".join(found.problems) or "balance") + still)
    return OK if found.is_clean else INVALID


def salvage(words: Sequence[str]) -> int:
    """``salvage [RUN]``: make the tables of a run that was killed, from its log."""
    parser = run_parser(
        "salvage", "Make the tables of a killed run from its log; all of them if none is named."
    )
    parser.add_argument("run", nargs="?", help=RUN)
    read = parser.parse_intermixed_args(list(words))
    listings = list_runs(read.runs_dir) if read.run is None else [find_run(read.runs_dir, read.run)]
    killed = [listing.run for listing in listings if read.run is not None or listing.status == "unfinished"]
    code = OK
    for run in killed:
        try:
            end = salvage_run(run)
        except ConfigError as error:  # a log that cannot be read keeps no other run from its tables
            print(f"error: {error}", file=sys.stderr)
            code = BAD_INPUT
        except OSError as error:
            kept = "its log keeps what was recorded; salvage it when there is room"
            print(f"error: {error.filename}: {error.strerror}; {kept}", file=sys.stderr)
            code = FAILED
        else:
            print(f"run {run.run_id}: {end.status}, {end.verdict} ({'; '.join(end.reasons)})")
    if not killed:
        print(f"no killed run in {read.runs_dir}", file=sys.stderr)
    return code


def _verdict(difference: Difference | ReplayStopped | None) -> str:
    if difference is None:
        return "the same"
    if isinstance(difference, ReplayStopped):
        return str(difference)
    recorded, replayed = record_text(difference.recorded), record_text(difference.replayed)
    return f"record {difference.place} differs; recorded {recorded}, replayed {replayed}"


def record_text(record: Record | None) -> str:
    """Return a record of a log as one line, "nothing" for None."""
    return "nothing" if record is None else to_json_line(record)
