"""The verb ``preview``: what a split or merge would do at an instant of a run."""

from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from vertumnus.commandline.columns import in_columns
from vertumnus.commandline.exit_codes import OK
from vertumnus.commandline.parser import RUN, Parser, run_parser
from vertumnus.domain.cluster import CpGroup, group_named
from vertumnus.domain.forecast import ForecastOutcome
from vertumnus.domain.units import Nanoseconds, to_ns, to_seconds
from vertumnus.domain.wording import byte_size, counted
from vertumnus.policy.recent import KEPT_NS
from vertumnus.records.run_dir import Listing, find_run, list_runs
from vertumnus.run.preview import RunPreview, preview_run


def preview(words: Sequence[str]) -> int:
    """``preview split|merge WORKER...``: replay a run up to an instant and try the move on a copy."""
    read = _parser().parse_intermixed_args(list(words))
    listing = _run(read)
    at_ns = None if read.at is None else to_ns(read.at)
    found = preview_run(listing.run, (read.kind, read.workers), at_ns, to_ns(read.replay))
    if read.json:
        print(msgspec.json.format(msgspec.json.encode(_plain(listing, found)), indent=2).decode())
    else:
        print(_text(listing, found))
    return OK


def _parser() -> Parser:
    parser = run_parser(
        "preview",
        "What a split or merge would do at an instant of a run, tried on a copy of its pool.",
    )
    parser.add_argument("kind", choices=["split", "merge"])
    parser.add_argument(
        "workers", nargs="+", type=_worker, metavar="WORKER", help="<first rank>x<degree>, as 0x4"
    )
    parser.add_argument("--run", default="latest", help=f"{RUN}; default the newest, running or not")
    parser.add_argument(
        "--at", type=_seconds, metavar="SECONDS", help="on the run's clock; default the end of its log"
    )
    parser.add_argument(
        "--replay",
        type=_span,
        default=60.0,
        metavar="SECONDS",
        help="the arrivals of this long before stand for those to come; default 60",
    )
    parser.add_argument("--json", action="store_true", help="the numbers as JSON")
    return parser


def _run(read: Namespace) -> Listing:
    """Return the run that is asked for; the newest one may still be going."""
    listings = list_runs(read.runs_dir)
    if read.run == "latest" and listings:
        return listings[-1]
    return find_run(read.runs_dir, read.run)


def _text(listing: Listing, found: RunPreview) -> str:
    seen = found.preview
    when = f"at {to_seconds(seen.at_ns):.3f} s of run {listing.run.run_id} ({listing.name})"
    rows = [("", "requests", "mean TTFT", "P90 TTFT", "attainment")]
    rows += [_row("stay", seen.stay), _row(seen.move.kind, seen.moved)]
    lines = [
        f"PREDICTED  {seen.move}  {when}",
        f"pool       {found.composition}",
        f"drain      {_time(seen.moved.drain_ns)}, switch {_time(seen.moved.switch_ns)}",
        f"reconcile  missing at their new worker: {counted(seen.moved.missing_blocks, 'block')}, "
        f"{byte_size(seen.missing_bytes)}; wanted soon: {counted(seen.moved.copied_blocks, 'block')}, "
        f"{byte_size(seen.moved.copied_bytes)}",
        "",
        in_columns(rows),
        "",
        f"simulated from there on without noise; the arrivals of the last {to_seconds(seen.span_ns):g} s "
        "stand for the next ones",
        *_given_up(found.patience_ns),
    ]
    return "\n".join(lines)


def _given_up(patience_ns: Nanoseconds | None) -> Iterator[str]:
    """Yield how the TTFTs count those whose clients give up, where any do."""
    if patience_ns is not None:
        yield f"clients give up after {to_seconds(patience_ns):g} s, which then counts as their TTFT"


def _row(name: str, outcome: ForecastOutcome) -> tuple[str, str, str, str, str]:
    attainment = "-" if outcome.slo_attainment is None else f"{outcome.slo_attainment:.1%}"
    missed = outcome.requests - outcome.served
    requests = f"{outcome.requests:,}" + (f" ({missed:,} unserved)" if missed else "")
    return name, requests, _time(outcome.ttft_mean_ns), _time(outcome.ttft_p90_ns), attainment


def _time(nanoseconds: int | None) -> str:
    return "-" if nanoseconds is None else f"{to_seconds(nanoseconds):.3f} s"


def _plain(listing: Listing, found: RunPreview) -> dict[str, Any]:
    """Return the preview as plain values; undefined is None, durations are seconds, shares 0..1."""
    seen = found.preview
    return {
        "run_id": listing.run.run_id,
        "execution": "simulated" if found.backend == "sim" else "executed",
        "at_s": to_seconds(seen.at_ns),
        "span_s": to_seconds(seen.span_ns),
        "patience_s": _seconds_of(found.patience_ns),
        "composition": str(found.composition),
        "move": str(seen.move),
        "drain_s": _seconds_of(seen.moved.drain_ns),
        "switch_s": _seconds_of(seen.moved.switch_ns),
        "missing_blocks": seen.moved.missing_blocks,
        "missing_bytes": seen.missing_bytes,
        "copied_blocks": seen.moved.copied_blocks,
        "copied_bytes": seen.moved.copied_bytes,
        "stay": _numbers(seen.stay),
        "moved": _numbers(seen.moved),
    }


def _numbers(outcome: ForecastOutcome) -> dict[str, Any]:
    return {
        "requests": outcome.requests,
        "served": outcome.served,
        "ttft_mean_s": _seconds_of(outcome.ttft_mean_ns),
        "ttft_p90_s": _seconds_of(outcome.ttft_p90_ns),
        "slo_attainment": outcome.slo_attainment,
    }


def _seconds_of(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else to_seconds(nanoseconds)


def _worker(word: str) -> CpGroup:
    try:
        return group_named(word)
    except ValueError as error:
        raise ArgumentTypeError(f"found {word}, must be <first rank>x<degree> as 0x4") from error


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= 1e9:
        raise ArgumentTypeError(f"found {word}, must be seconds on the run's clock, from 0 to 1e9")
    return seconds


def _span(word: str) -> float:
    seconds = _seconds(word)
    if not 0.0 < seconds <= to_seconds(KEPT_NS):
        raise ArgumentTypeError(f"found {word}, must be above 0 and at most {to_seconds(KEPT_NS):g}")
    return seconds
