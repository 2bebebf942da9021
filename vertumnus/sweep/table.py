"""The table that closes a sweep: what each job changed, how it ended, what it measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from vertumnus.domain.wording import counted
from vertumnus.report.store import query
from vertumnus.sweep.job import Ending

HEADINGS = ("job", "overrides", "status", "verdict", "mean TTFT", "P90 TTFT", "attained", "run")

_METRICS = "SELECT run_id, ttft_mean_s, ttft_p90_s, slo_attainment FROM runs"


class _Worded(Protocol):
    @property
    def words(self) -> tuple[str, ...]: ...


def closing_rows(
    jobs: Sequence["_Worded"], endings: Mapping[int, Ending], runs_dir: Path
) -> list[tuple[str, ...]]:
    """Return the headings and a row for each of *jobs*, numbered from 1; one for all that had not started."""
    ids = {ending.run_id for ending in endings.values() if ending.run_id is not None}
    metrics = {row["run_id"]: row for row in query(runs_dir, _METRICS, only=ids).dicts()}
    rows: list[tuple[str, ...]] = [HEADINGS]
    for number, job in enumerate(jobs, 1):
        ending = endings.get(number)
        if ending is not None:
            told = (str(number), varied(job, jobs), ending.status, ending.verdict or "")
            rows.append((*told, *_numbers(metrics.get(ending.run_id or "")), ending.run_id or ""))
    return rows + _not_started(jobs, endings)


def _not_started(jobs: Sequence[_Worded], endings: Mapping[int, Ending]) -> list[tuple[str, ...]]:
    """Return one row for all jobs that had not started, or none: what has run is what there is to read."""
    numbers = [number for number in range(1, len(jobs) + 1) if number not in endings]
    if not numbers:
        return []
    first = varied(jobs[numbers[0] - 1], jobs)
    rest = f" and {counted(len(numbers) - 1, 'more job')}" if len(numbers) > 1 else ""
    return [(str(numbers[0]), first + rest, "not started", *[""] * (len(HEADINGS) - 3))]


def varied(job: _Worded, jobs: Sequence[_Worded]) -> str:
    """Return the overrides of *job* that some other job does not share; all of them where there is none."""
    others = [word for word in job.words if any(word not in other.words for other in jobs)]
    return " ".join(others or job.words) or "as configured"


def _numbers(run: Mapping[str, Any] | None) -> tuple[str, str, str]:
    if run is None:
        return ("", "", "")
    mean, p90, share = run["ttft_mean_s"], run["ttft_p90_s"], run["slo_attainment"]
    return (
        "" if mean is None else f"{mean:.3f} s",
        "" if p90 is None else f"{p90:.3f} s",
        "" if share is None else f"{100 * share:.1f} %",
    )
