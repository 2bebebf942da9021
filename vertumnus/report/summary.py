"""The end-of-run summary for people, drawn with Rich; plain text where there is no terminal."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from vertumnus.domain.wording import byte_size, counted
from vertumnus.report.drawing import NO_DATA, Grid, cell, grid
from vertumnus.report.run_report import STATUSES, RunReport

LISTED_MOVES = 10
"""Transitions that the summary lists; the report `reconfigs` has them all."""
BUSY_SHARE = 0.25
"""Of the cores: where other programs used more, an executed run's times are theirs, too."""
STAGES = ("drain", "park", "switch")


def print_summary(report: RunReport, console: Console) -> None:
    """Draw the summary of a run."""
    run = report.run
    console.print(f"{str(run['execution']).upper()}  {run['name']}  run {run['run_id']}", style="bold")
    console.print(f"{run['model']} on {run['hardware']}, {run['composition']}")
    console.print(_asked(run))
    console.print(_counts(run))
    for table in (_ttft(run), _parts(report), _buckets(report), _workers(report)):
        console.print(table)
    if report.reconfigs:
        console.print(_reconfigs(report.reconfigs))
    console.print(_rates(run))
    if report.copies["copies"]:
        console.print(_copies(report.copies))
    _print_verdict(run, console)
    place = report.runs_dir / str(run["run_id"])
    console.print(f"results: {place}", soft_wrap=True)
    console.print(f'try: vertumnus sql "{_example(run)}"{_elsewhere(report.runs_dir)}', soft_wrap=True)


def _asked(run: dict[str, Any]) -> str:
    names = ("workload", "policy", "controller", "seed")
    parts = [f"{name} {run[name]}" for name in names if run[name] is not None]
    if run["offered_requests_per_s"] is not None:
        parts.append(f"offered {_rate(run['offered_requests_per_s'], 'requests/s')}")
    if run["patience_s"] is not None:
        parts.append(f"given up after {run['patience_s']:g} s without a first token")
    return ", ".join(parts)


def _counts(run: dict[str, Any]) -> str:
    parts = [f"{run[status]:,} {status}" for status in STATUSES if run[status]]
    if run["never_arrived"]:
        parts.append(
            f"{run['never_arrived']:,} of {counted(run['planned_requests'], 'planned one')} never arrived"
        )
    measured = f"the last {run['measured_requests']:,} measured"
    bad = counted(run["skipped_rows"], "bad row") if run["skipped_rows"] else ""
    skipped = f"; {bad} of the trace skipped" if bad else ""
    return f"{counted(run['requests'], 'request')}: {', '.join(parts) or NO_DATA} ({measured}){skipped}"


def _ttft(run: dict[str, Any]) -> Grid:
    success = [_s(run[f"ttft_{name}_s"]) for name in ("mean", "p50", "p90", "p99")]
    everyone = ["", *(_s(run[f"ttft_all_{name}_s"]) for name in ("p50", "p90", "p99"))]
    bound = [_s(run["ttft_bound_mean_s"]), "", _s(run["ttft_bound_p90_s"]), ""]
    rows = [["finished", *success], ["all, others as infinite", *everyone], ["lower bound", *bound]]
    return grid("TTFT (percentiles by linear interpolation)", ("", "mean", "P50", "P90", "P99"), rows)


def _parts(report: RunReport) -> Grid:
    names = ("queue_s", "cache_wait_s", "prefill_s", "ext_s", "ttft_s", "ttft_bound_s")
    rows = [
        [row["length_bucket"], f"{row['requests']:,}", *(_s(row[name]) for name in names)]
        for row in report.breakdown
    ]
    headings = ("input tokens", "finished", "queue", "cache wait", "prefill", "ext", "TTFT", "lower bound")
    return grid("Mean TTFT = queue + cache wait + prefill + ext", headings, rows)


def _buckets(report: RunReport) -> Grid:
    rows = [
        [row["length_bucket"], f"{row['requests']:,}", _s(row["slo_ttft_s"]), _share(row["slo_attainment"])]
        for row in report.buckets
    ]
    total = ["all", f"{report.run['measured_requests']:,}", "", _share(report.run["slo_attainment"])]
    return grid(
        "TTFT attainment, weighted by input tokens",
        ("input tokens", "requests", "target", "attained"),
        [*rows, total],
    )


def _workers(report: RunReport) -> Grid:
    rows = [
        [
            row["worker_id"],
            str(row["cp_degree"]),
            f"{row['requests']:,}",
            f"{row['input_tokens']:,}",
            _share(row["cached_tokens"] / row["input_tokens"] if row["input_tokens"] else None),
            str(row["queue_peak"]),
            _share(row["busy_share"]),
        ]
        for row in report.workers
    ]
    headings = ("worker", "degree", "prefills", "input tokens", "cached", "longest queue", "busy")
    return grid("Workers", headings, rows)


def _reconfigs(reconfigs: Sequence[dict[str, Any]]) -> Grid:
    shown = reconfigs[-LISTED_MOVES:]
    rows = [
        [_s(row["t_s"]), row["move"], *(_stage(row[f"{name}_s"]) for name in STAGES), row["outcome"]]
        for row in shown
    ]
    refused = sum(row["outcome"] == "refused" for row in reconfigs)
    counted = f"Transitions ({len(reconfigs) - refused:,}{f', {refused:,} refused' if refused else ''})"
    title = counted if len(shown) == len(reconfigs) else f"{counted}, the last {len(shown)}"
    return grid(title, ("begun", "move", *STAGES, "outcome"), rows)


def _copies(copies: dict[str, Any]) -> str:
    failed = f", {copies['failed']:,} failed" if copies["failed"] else ""
    size = byte_size(copies["payload_bytes"])
    return (
        f"copies between workers: {copies['copies']:,}{failed}; "
        f"{counted(copies['blocks'], 'block')}, {size}, {_s(copies['wire_s'])} on the wire"
    )


def _rates(run: dict[str, Any]) -> str:
    lines = [
        f"hit rate {_share(run['hit_rate'])} (an unlimited shared cache: {_share(run['oracle_hit_rate'])})",
        _throughput(run),
        f"mean TPOT {_s(run['tpot_mean_s'])}",
    ]
    if run["sim_requests_per_s"] is not None:
        lines.append(
            f"simulated {run['sim_s']:,.0f} s in {run['wall_s']:,.1f} s: "
            f"{_rate(run['sim_requests_per_s'], 'requests/s')}"
        )
    elif run["wall_s"] is not None:
        others = run["others_cpu_share"]
        beside = "" if others is None else f"; other programs used {_share(others)} of the cores meanwhile"
        lines.append(f"ran for {run['wall_s']:,.1f} s{beside}")
    return "\n".join(lines)


def _throughput(run: dict[str, Any]) -> str:
    if run["served_s"] is None:  # a run of an older version, or one without a first token
        return f"throughput {_rate(run['requests_per_s'], 'requests/s')} until the last end"
    return (
        f"throughput {_rate(run['served_requests_per_s'], 'requests/s')}, "
        f"{_rate(run['served_input_tokens_per_s'], 'input tokens/s')}, over the {run['served_s']:,.1f} s "
        "from the first measured arrival to the last first token"
    )


def _print_verdict(run: dict[str, Any], console: Console) -> None:
    style = "bold green" if run["verdict"] == "VALID" else "bold red"
    console.print(f"{run['verdict']} ({run['status']})", style=style)
    if (run["others_cpu_share"] or 0.0) > BUSY_SHARE:
        console.print("  the machine was busy with other programs: its times say little", style="bold yellow")
    for reason in run["reasons"]:
        console.print(f"  - {reason}", style=style)


def _example(run: dict[str, Any]) -> str:
    return (
        "SELECT cp_degree, count(*), quantile_cont(ttft_s, 0.9) FROM requests "
        f"WHERE run_id = '{run['run_id']}' GROUP BY cp_degree ORDER BY cp_degree"
    )


def _elsewhere(runs_dir: Path) -> str:
    return "" if runs_dir == Path("runs") else f" --runs-dir {shlex.quote(str(runs_dir))}"


def _s(seconds: float | None) -> str:
    return NO_DATA if seconds is None else f"{seconds:.3f} s"


def _stage(seconds: float | None) -> str:
    """Return a stage's length; a switch takes milliseconds, a drain may take minutes."""
    return _s(seconds) if seconds is None or seconds >= 1.0 else f"{1e3 * seconds:.1f} ms"


def _share(share: float | None) -> str:
    return NO_DATA if share is None else f"{100 * share:.1f} %"


def _rate(rate: float | None, unit: str) -> str:
    return NO_DATA if rate is None else f"{cell(rate)} {unit}"
