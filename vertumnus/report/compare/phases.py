"""Metrics that are worked out of the requests: those of a phase, and those that no column of a run has.

Every request that arrived in a phase counts there, those of the warm-up too: a phase is a stretch of the
run by itself. Of a run as a whole only the measured ones count.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from vertumnus.report.compare.metrics import Metric
from vertumnus.report.phases import Stretch
from vertumnus.report.store import query

WHOLE = Stretch("whole run", 0.0, inf)


def measured_values(
    runs_dir: Path, run_ids: Iterable[str], metrics: Iterable[Metric]
) -> dict[tuple[str, str], float | None]:
    """Return the metrics of each run's measured requests by (run id, metric)."""
    wanted = [metric for metric in metrics if metric.by_phase is not None]
    if not wanted:
        return {}
    columns = ", ".join(f"{metric.by_phase} AS {metric.name}" for metric in wanted)
    sql = f"SELECT run_id, {columns} FROM requests WHERE measured GROUP BY run_id"
    answer = query(runs_dir, sql, only=set(run_ids))
    return {(row["run_id"], metric.name): row[metric.name] for row in answer.dicts() for metric in wanted}


def phase_values(
    runs_dir: Path, stretches: Mapping[str, Sequence[Stretch]], metrics: Iterable[Metric]
) -> dict[tuple[str, str, str], float | None]:
    """Return the metrics of each run's *stretches* by (run id, stretch, metric)."""
    cuts: list[dict[str, Any]] = [
        {"run_id": run_id, "stretch": each.name, "start_s": each.start_s, "end_s": min(each.end_s, 1e12)}
        for run_id, all_of_run in stretches.items()
        for each in all_of_run
    ]
    wanted = [metric for metric in metrics if metric.by_phase is not None]
    columns = ", ".join(f"{metric.by_phase} AS {metric.name}" for metric in wanted)
    sql = f"""
        WITH cuts AS (SELECT unnest($cuts, recursive := true))
        SELECT run_id, stretch, {columns}
        FROM cuts JOIN requests USING (run_id)
        WHERE arrival_s >= start_s AND arrival_s < end_s
        GROUP BY run_id, stretch
    """
    answer = query(runs_dir, sql, {"cuts": cuts}, only=set(stretches))
    return {
        (row["run_id"], row["stretch"], metric.name): row[metric.name]
        for row in answer.dicts()
        for metric in wanted
    }
