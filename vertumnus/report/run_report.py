"""One run as its stored tables tell it: what the summary shows and ``--json`` prints."""

from pathlib import Path
from typing import Any, NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.report.reports import answer_report


class RunReport(NamedTuple):
    """The rows of the reports that make up a run's summary, by column name."""

    runs_dir: Path
    run: dict[str, Any]
    """The row of summary.sql."""
    buckets: list[dict[str, Any]]
    breakdown: list[dict[str, Any]]
    workers: list[dict[str, Any]]
    reconfigs: list[dict[str, Any]]
    copies: dict[str, Any]
    """The row of cache_ops.sql for all copies."""


def load_report(runs_dir: Path, run_id: str) -> RunReport:
    """Return the report of the ended run *run_id*; raises ConfigError when there is none."""
    rows = answer_report(runs_dir, "summary", run_id).dicts()
    if not rows:
        raise ConfigError(f"run {run_id}: not among the finished runs in {runs_dir}")
    return RunReport(
        runs_dir,
        rows[0],
        answer_report(runs_dir, "slo_by_bucket", run_id).dicts(),
        answer_report(runs_dir, "ttft_breakdown", run_id).dicts(),
        answer_report(runs_dir, "worker_load", run_id).dicts(),
        answer_report(runs_dir, "reconfigs", run_id).dicts(),
        answer_report(runs_dir, "cache_ops", run_id).dicts()[-1],
    )


_BY = ("purpose", "origin")
STATUSES = ("finished", "failed", "rejected", "cancelled", "interrupted")


def report_json(report: RunReport) -> dict[str, Any]:
    """Return the run as plain values; undefined is None, durations are seconds, shares 0..1."""
    run = report.run
    same = (
        "run_id",
        "name",
        "execution",
        "status",
        "verdict",
        "reasons",
        "workload",
        "policy",
        "controller",
        "composition",
        "seed",
        "offered_requests_per_s",
        "patience_s",
        "planned_requests",
        "never_arrived",
        "skipped_rows",
        "requests",
        "measured_requests",
        "slo_attainment",
        "tpot_attainment",
        "ttft_over_bound",
        "hit_rate",
        "oracle_hit_rate",
        "requests_per_s",
        "input_tokens_per_s",
        "served_requests_per_s",
        "served_input_tokens_per_s",
        "served_s",
        "tpot_mean_s",
        "send_lag_p99_s",
        "wall_s",
        "sim_s",
        "sim_requests_per_s",
        "others_cpu_share",
    )
    return {
        **{name: run[name] for name in same},
        "by_status": {status: run[status] for status in STATUSES},
        "ttft_s": {name: run[f"ttft_{name}_s"] for name in ("mean", "p50", "p90", "p99")},
        "ttft_all_s": {name: run[f"ttft_all_{name}_s"] for name in ("p50", "p90", "p99")},
        "ttft_bound_s": {name: run[f"ttft_bound_{name}_s"] for name in ("mean", "p90")},
        "ttft_parts_s": {part: run[f"{part}_mean_s"] for part in ("queue", "cache_wait", "prefill", "ext")},
        "reconfigs": report.reconfigs,
        "cache_ops": {name: value for name, value in report.copies.items() if name not in _BY},
        "slo_by_bucket": {row["length_bucket"]: row["slo_attainment"] for row in report.buckets},
    }
