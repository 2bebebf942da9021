"""The phases of a run with ``workload=phases``, in the run's own time, and its metrics in each of them.

Every request that arrived in a phase counts there, those of the warm-up too: a phase is a stretch of the
run by itself. Run time begins with the first arrival, a mean gap or so after the first phase does.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from vertumnus.domain.errors import ConfigError
from vertumnus.report.compare.members import Member
from vertumnus.report.compare.metrics import Metric
from vertumnus.report.store import query


class Stretch(NamedTuple):
    """A part of a run, from its start to before its end [s]."""

    name: str
    start_s: float
    end_s: float


WHOLE = Stretch("whole run", 0.0, inf)


def phases(run: Member) -> list[Stretch]:
    """Return the phases of *run* that its window of the workload reaches.

    Raises ConfigError when it has none, or when its arrivals were scaled by an unknown factor.
    """
    workload, arrival = run.config["workload"], run.config["arrival"]
    durations = [phase["duration_s"] for phase in workload.get("phases", ())]
    if not durations:
        raise ConfigError(f"--phase: run {run.run_id} has no phases (workload {workload['name']})")
    moved = [key for key in ("rate", "load") if arrival.get(key) is not None]
    if moved or arrival.get("process") != "trace":
        told = ", ".join(f"arrival.{key}={arrival[key]}" for key in moved or ["process"])
        raise ConfigError(f"--phase: run {run.run_id} has {told}, which moves arrivals out of their phases")
    return _cut(durations, workload.get("start_s", 0.0), arrival.get("time_scale") or 1.0)


def _cut(durations: Sequence[float], start_s: float, scale: float) -> list[Stretch]:
    found, begin = [], -start_s
    for number, duration in enumerate(durations, 1):
        end = begin + duration
        if end > 0.0:
            found.append(Stretch(f"phase {number}", max(0.0, begin) * scale, end * scale))
        begin = end
    last = found[-1]._replace(end_s=inf) if found else None  # whatever still arrives is of the last
    return [*found[:-1], *([last] if last else [])]


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
