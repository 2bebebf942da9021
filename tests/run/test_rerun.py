"""A stored run once more: to the byte where it is simulated, and what is said where it is not."""

import shutil
from pathlib import Path

import pytest

from tests.support.recorded import a_history, a_run, a_ulid
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, INVALID, OK
from vertumnus.records.run_dir import RunDir, list_runs
from vertumnus.run.rerun import likeness

SMALL = ("+experiment=tool_agent", "backend=sim", "workload.requests=150", "cluster.gpus=8")
POOL = ("cluster.composition={2: 2, 4: 1}", "arrival.rate=6", "records.decision_share=0.5")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one simulated run, whose first composition a slice chose."""
    runs_dir = tmp_path_factory.mktemp("rerun") / "runs"
    assert (
        main([*SMALL, *POOL, "initial=head", "initial.in_sample=true", "seed=3", f"runs_dir={runs_dir}"])
        == OK
    )
    return runs_dir


def test_a_simulated_run_comes_out_the_same(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Log and every table but that of the run itself, byte for byte; the composition is not chosen again."""
    runs_dir = shutil.copytree(stored, tmp_path / "runs")
    assert main(["rerun", "--runs-dir", str(runs_dir)]) == OK
    out = capsys.readouterr().out
    assert "code: the same" in out and out.endswith("tables: the same\nIDENTICAL\n")
    first, again = (listing.run for listing in list_runs(runs_dir))
    assert likeness(first, again).is_identical
    assert f"run {first.run_id} again: run {again.run_id}, finished VALID" in out


def test_a_run_that_was_changed_is_found_out(stored: Path, tmp_path: Path) -> None:
    """Another seed leaves another log and other tables: the first record that differs is told."""
    runs_dir = shutil.copytree(stored, tmp_path / "runs")
    assert main([*SMALL, *POOL, "seed=4", f"runs_dir={runs_dir}"]) == OK
    first, other = (listing.run for listing in list_runs(runs_dir))
    found = likeness(first, other)
    assert not found.is_identical
    assert found.difference is not None and found.difference.recorded != found.difference.replayed
    assert "requests" in found.tables and "runs" not in found.tables


def test_what_does_not_come_out_the_same_is_invalid(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table that somebody touched: named, with the numbers of both runs, and exit code 3."""
    runs_dir = shutil.copytree(stored, tmp_path / "runs")
    (listing,) = list_runs(runs_dir)
    table = listing.run.table("workers")
    table.unlink()
    assert main(["rerun", listing.run.run_id[:20], "--runs-dir", str(runs_dir)]) == INVALID
    out = capsys.readouterr().out
    assert "log: the same" in out and "tables: workers differ" in out
    assert "NOT IDENTICAL; mean TTFT" in out


def test_a_run_of_another_version_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A config whose keys this version does not know, or lacks, is no run: nothing is started."""
    a_run(tmp_path, a_ulid(1), a_history(3))
    assert main(["rerun", "--runs-dir", str(tmp_path)]) == BAD_INPUT
    assert "the run is of another version: name: required, but not set" in capsys.readouterr().err
    assert [listing.run for listing in list_runs(tmp_path)] == [RunDir(tmp_path / a_ulid(1))]
