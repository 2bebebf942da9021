"""The runs that a comparison is of: those of a sweep, or those named; the ones that do not count are told."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.records.run_dir import find_run
from vertumnus.records.sweeps import SweepJob, SweepRecord, find_sweep, list_sweeps
from vertumnus.report.store import query


class Member(NamedTuple):
    """One finished run as its row of the runs table tells it."""

    run_id: str
    words: Mapping[str, str]
    """Value by key, as typed."""
    seed: int
    arrivals: str
    """Equal for runs that served the same requests at the same times."""
    config: dict[str, Any]
    row: Mapping[str, Any]

    @property
    def execution(self) -> str:
        """Whether its prefills were computed or only timed: "executed" or "simulated"."""
        return str(self.row["execution"])


class Members(NamedTuple):
    """What can be compared, and what was left out and why."""

    runs: list[Member]
    left_out: list[str]


def find_members(runs_dir: Path, wanted: Sequence[str]) -> Members:
    """Return the runs that *wanted* names: sweeps ("latest" is one) and run ids, each run once.

    Raises ConfigError when a word names neither.
    """
    return members_by(runs_dir, {"": wanted})[""]


def members_by(runs_dir: Path, wanted: Mapping[str, Sequence[str]]) -> dict[str, Members]:
    """Return the same of each of *wanted*, by its key; the runs table is read once."""
    rows = {row["run_id"]: row for row in query(runs_dir, "SELECT * FROM runs ORDER BY run_id").dicts()}
    return {key: _members(runs_dir, words, rows) for key, words in wanted.items()}


def _members(runs_dir: Path, wanted: Sequence[str], rows: Mapping[str, Mapping[str, Any]]) -> Members:
    chosen: dict[str, None] = {}
    left_out: list[str] = []
    for word in wanted:
        record = None if word in rows else find_sweep(runs_dir, word)
        if record is None:
            chosen[word if word in rows else _run_id(runs_dir, word)] = None
        else:
            runs, missing = _runs_of(record, rows.values())
            chosen.update(dict.fromkeys(runs))
            left_out += missing
    members = []
    for run_id in chosen:
        problem = _unusable(run_id, rows.get(run_id))
        if problem is None:
            members.append(_member(rows[run_id]))
        else:
            left_out.append(problem)
    return Members(members, left_out)


def words_by_key(words: Iterable[str]) -> dict[str, str]:
    """Return the overrides *words* as value by key; a deleted key has the value "~"."""
    pairs = (word.partition("=") for word in words)
    return {key.lstrip("+~"): "~" if key.startswith("~") else value for key, _, value in pairs}


def _run_id(runs_dir: Path, word: str) -> str:
    if word == "latest":
        raise ConfigError(f"compare latest: no sweep in {runs_dir} yet; name runs, or make one with -m")
    try:
        return find_run(runs_dir, word).run.run_id
    except ConfigError as error:
        newest = ", ".join(list_sweeps(runs_dir)[-3:]) or "none"
        raise ConfigError(
            f"compare {word}: neither a sweep nor a run in {runs_dir}; the newest sweeps are: {newest}"
        ) from error


def _runs_of(record: SweepRecord, rows: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Return the runs of the sweep *record*, and a line about its jobs that have none."""
    same: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        same.setdefault((row["asked_hash"], row["code_hash"]), []).append(row)
    found = [
        _runs_of_job(job, record.sweep, same.get((job.config_hash, job.code_hash), ())) for job in record.jobs
    ]
    missing = [job for job, runs in zip(record.jobs, found, strict=True) if not runs]
    told = [_missing(record, missing)] if missing else []
    return [run for runs in found for run in runs], told


def _missing(record: SweepRecord, jobs: Sequence[SweepJob]) -> str:
    rest = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
    has = "has" if len(jobs) == 1 else "have"
    return (
        f"{len(jobs)} of {counted(len(record.jobs), 'job')} of {record.sweep} {has} no run yet: "
        f"{' '.join(jobs[0].words)}"
        f"{rest}; --resume {record.sweep} goes on with them"
    )


def _runs_of_job(job: SweepJob, sweep: str, same: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the runs of *job*: of an executed one all of this sweep, of a simulated one the best."""
    if job.is_live:
        return [row["run_id"] for row in same if row["sweep"] == sweep]
    best = sorted(same, key=lambda row: (_is_valid(row), row["run_id"]))[-1:]  # they are all the same run
    return [row["run_id"] for row in best]


def _is_valid(row: Mapping[str, Any]) -> bool:
    return (row["status"], row["verdict"]) == ("finished", "VALID")


def _unusable(run_id: str, row: Mapping[str, Any] | None) -> str | None:
    """Return why a run cannot be compared; None when it can."""
    if row is None:
        return f"{run_id}: has not ended, or was killed (vertumnus salvage makes its tables)"
    if not _is_valid(row):
        return f"{run_id} ({' '.join(row['overrides'])}): {row['verdict']}: {'; '.join(row['reasons'])}"
    if row["arrivals_hash"] is None:
        return f"{run_id}: of a version that did not note its arrivals; run it again"
    return None


def _member(row: Mapping[str, Any]) -> Member:
    return Member(
        run_id=row["run_id"],
        words=words_by_key(row["overrides"]),
        seed=row["seed"],
        arrivals=row["arrivals_hash"],
        config=msgspec.json.decode(row["config"]),
        row=row,
    )
