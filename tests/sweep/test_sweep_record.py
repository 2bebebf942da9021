"""A sweep is known by what it runs, and its runs by their configuration and code."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from vertumnus.domain.errors import ConfigError
from vertumnus.records.sweeps import SweepJob, SweepRecord, find_sweep, list_sweeps, sweep_id, write_sweep

JOBS = tuple(
    SweepJob(words=(f"seed={seed}",), config_hash=f"hash {seed}", code_hash="code", is_live=False)
    for seed in range(3)
)


def a_record(sweep: str) -> SweepRecord:
    """Return the record of a sweep of that id."""
    return SweepRecord(sweep=sweep, words=("seed=0,1,2",), jobs=JOBS)


def test_the_id_follows_from_jobs_and_code() -> None:
    """The order and the words do not matter; a configuration or the code does."""
    known = sweep_id("my trial", JOBS)
    assert known.startswith("my_trial-") and len(known) == len("my_trial-") + 8
    assert sweep_id("my trial", JOBS[::-1]) == known
    assert sweep_id("my trial", [replace(job, words=()) for job in JOBS]) == known
    assert sweep_id("my trial", JOBS[:2]) != known
    assert sweep_id("my trial", [*JOBS[:2], replace(JOBS[2], code_hash="newer")]) != known


def test_a_sweep_is_found_by_its_id_the_beginning_of_it_or_as_the_latest(tmp_path: Path) -> None:
    """What fits none is None, what fits two is refused with both."""
    for sweep in ("trial-11111111", "trial-12222222", "other-3"):
        write_sweep(tmp_path, a_record(sweep))
    assert list_sweeps(tmp_path) == ["trial-11111111", "trial-12222222", "other-3"]
    assert find_sweep(tmp_path, "latest") == a_record("other-3")
    assert find_sweep(tmp_path, "trial-11") == a_record("trial-11111111")
    assert find_sweep(tmp_path, "none") is None
    with pytest.raises(ConfigError, match=r"2 sweeps in .* fit: trial-11111111, trial-12222222"):
        find_sweep(tmp_path, "trial-1")


def test_there_may_be_no_sweep(tmp_path: Path) -> None:
    """Not even the folder."""
    assert list_sweeps(tmp_path / "nowhere") == []
    assert find_sweep(tmp_path, "latest") is None


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    """File and what is wrong with it."""
    write_sweep(tmp_path, a_record("trial-1"))
    file = tmp_path / "sweeps" / "trial-1.json"
    file.write_text(json.dumps({"sweep": "trial-1"}))
    with pytest.raises(ConfigError, match=r"trial-1\.json: is no readable sweep: .*words"):
        find_sweep(tmp_path, "trial-1")


def test_a_folder_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    """A file is in the way."""
    (tmp_path / "sweeps").write_text("")
    with pytest.raises(ConfigError, match="cannot keep the sweep"):
        write_sweep(tmp_path, a_record("trial-1"))
