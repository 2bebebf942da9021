"""The jobs of a sweep that need not run: their run is there, finished and VALID."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vertumnus.report.store import query
from vertumnus.sweep.job import Ending, Job

_VALID = """
SELECT run_id, asked_hash, code_hash, sweep, started_at, execution FROM runs
WHERE status = 'finished' AND verdict = 'VALID' AND code_hash IS NOT NULL
ORDER BY run_id
"""


class ValidRuns:
    """The finished VALID runs below a folder, as they are when it is made."""

    def __init__(self, runs_dir: Path) -> None:
        self._runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for run in query(runs_dir, _VALID).dicts():
            self._runs.setdefault((run["asked_hash"], run["code_hash"]), []).append(run)

    def endings(self, sweep: str, jobs: Mapping[int, Job]) -> dict[int, Ending]:
        """Return the endings of those of *jobs* whose configuration and code have a run.

        A simulated run may be of any sweep, since it would come out the same; an executed one has to be
        of this one. A run that began before its trace file was last changed does not count.
        """
        endings = {}
        for number, job in jobs.items():
            run_id = _newest(job, sweep, self._of(job))
            if run_id is not None:
                endings[number] = Ending("done before", run_id, "VALID")
        return endings

    def elsewhere(self, sweep: str, jobs: Iterable[Job]) -> tuple[int, list[str]]:
        """Return how many of *jobs* are executed and have a run of other sweeps only, and those sweeps."""
        others = [
            {run["sweep"] for run in self._of(job) if run["sweep"] is not None} - {sweep}
            for job in jobs
            if job.is_live and _newest(job, sweep, self._of(job)) is None
        ]
        return sum(map(bool, others)), sorted(set().union(*others))

    def _of(self, job: Job) -> Sequence[dict[str, Any]]:
        return self._runs.get((job.config_hash, job.code_hash), ())


def _newest(job: Job, sweep: str, runs: Sequence[dict[str, Any]]) -> str | None:
    changed = _trace_changed(job)
    fitting = [
        run["run_id"]
        for run in runs
        if (not job.is_live or run["sweep"] == sweep) and (changed is None or run["started_at"] > changed)
    ]
    return fitting[-1] if fitting else None


def _trace_changed(job: Job) -> datetime | None:
    """Return when the job's trace files were last written [UTC]; None when it reads none.

    One that cannot be read has no run that counts: the job is looked at anew, and that tells what is wrong.
    """
    try:
        written = [Path(trace).stat().st_mtime for trace in job.traces]
    except OSError:
        return datetime.max
    return datetime.fromtimestamp(max(written), UTC).replace(tzinfo=None) if written else None
