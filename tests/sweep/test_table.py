"""The table that closes a sweep: what ran is told job by job, what did not in one row."""

from pathlib import Path

from tests.support.recorded import a_run, a_ulid
from vertumnus.records.sweeps import SweepJob
from vertumnus.sweep.job import Ending
from vertumnus.sweep.table import HEADINGS, closing_rows


def some_jobs(number: int) -> list[SweepJob]:
    """Return jobs that differ in their seed."""
    return [
        SweepJob(words=("backend=sim", f"seed={seed}"), config_hash="", code_hash="", is_live=False)
        for seed in range(number)
    ]


def test_what_had_not_started_is_one_row(tmp_path: Path) -> None:
    """Of five jobs two ended: three rows, the last one for the three others, which it counts."""
    run = a_run(tmp_path, a_ulid(0))
    endings = {1: Ending("finished", run.run_id, "VALID"), 4: Ending("failed")}
    headings, first, failed, rest = closing_rows(some_jobs(5), endings, tmp_path)
    assert headings == HEADINGS
    assert first[:4] == ("1", "seed=0", "finished", "VALID") and first[-1] == run.run_id
    assert failed[:3] == ("4", "seed=3", "failed")
    assert rest[:3] == ("2", "seed=1 and 2 more jobs", "not started") and len(rest) == len(HEADINGS)


def test_a_sweep_that_is_done_has_no_such_row(tmp_path: Path) -> None:
    """Nor does a single job that is left count others."""
    endings = {number: Ending("bad input") for number in (1, 2)}
    assert [row[0] for row in closing_rows(some_jobs(2), endings, tmp_path)] == ["job", "1", "2"]
    assert closing_rows(some_jobs(3), endings, tmp_path)[-1][:3] == ("3", "seed=2", "not started")
