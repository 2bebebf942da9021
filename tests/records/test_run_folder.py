"""Runs are listed by time with their state; a killed one is rebuilt from its log."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.builders import a_request
from tests.support.recorded import BALANCED, a_header, a_history, a_run, a_run_under_way, a_ulid
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import INPUT, ORDER
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import TimerFired
from vertumnus.domain.orders import CloseTransition
from vertumnus.domain.units import SECOND
from vertumnus.records.finish import salvage
from vertumnus.records.planned import Planned
from vertumnus.records.provenance import RunStart, library_versions, run_start
from vertumnus.records.recorder import Recorder
from vertumnus.records.run_dir import RunDir, find_run, list_runs


def kill(recorder: Recorder) -> None:
    """Do what the end of the process does to a run: close its log, write nothing."""
    recorder._log.close()


def test_the_states_of_runs(tmp_path: Path) -> None:
    """Finished, failed, killed and running runs are told apart, oldest first; other folders are none."""
    a_run(tmp_path, a_ulid(1))
    _, failed = a_run_under_way(tmp_path, a_ulid(2))
    failed.finish("failed", None, wall_s=0.1, failure="out of memory")
    _, killed = a_run_under_way(tmp_path, a_ulid(3))
    kill(killed)
    _, running = a_run_under_way(tmp_path, a_ulid(4), name="going")
    (tmp_path / "notes").mkdir()
    states = [(each.name, each.status, each.verdict) for each in list_runs(tmp_path)]
    assert states == [
        ("trial", "finished", "VALID"),
        ("trial", "failed", "INVALID"),
        ("trial", "unfinished", None),
        ("going", "running", None),
    ]
    running.finish("finished", BALANCED, wall_s=0.1)
    assert list_runs(tmp_path)[-1].status == "finished"
    assert list_runs(tmp_path / "nowhere") == []


def test_a_failed_run_says_why(tmp_path: Path) -> None:
    """The error that ended a run is among its reasons."""
    run, recorder = a_run_under_way(tmp_path, a_ulid(1))
    end = recorder.finish("failed", None, wall_s=0.1, failure="out of memory")
    assert run.end() == end
    assert end.reasons == ("the run ended without closing its books", "out of memory")


def test_a_run_that_lost_ranks_in_a_switch_is_invalid(tmp_path: Path) -> None:
    """A switch that failed by its timer took ranks out of service: the numbers are of another pool."""
    run, recorder = a_run_under_way(tmp_path, a_ulid(1))
    recorder.record(INPUT, TimerFired(90 * SECOND, "switch 1", 90 * SECOND))
    halves = CpGroup(0, 2).halves
    recorder.record(ORDER, CloseTransition(1, "split", (CpGroup(0, 2),), halves, "failed", "no answer"))
    end = recorder.finish("finished", BALANCED, wall_s=0.1)
    assert end.verdict == "INVALID" and run.end() == end
    assert end.reasons == ("lost during the run: split 0x2 -> 0x1 + 1x1 (no answer)",)


def test_runs_are_found_by_latest_and_by_parts_of_the_id(tmp_path: Path) -> None:
    """Latest is the newest with tables; a beginning or end of the id does, if only one fits."""
    for number in (11, 21):
        a_run(tmp_path, a_ulid(number))
    _, recorder = a_run_under_way(tmp_path, a_ulid(31))
    assert find_run(tmp_path).run.run_id == a_ulid(21)
    assert find_run(tmp_path, a_ulid(11).lower()).run.run_id == a_ulid(11)
    assert find_run(tmp_path, "31").run.run_id == a_ulid(31)
    with pytest.raises(ConfigError, match=r"3 runs in .* fit; give more of the id"):
        find_run(tmp_path, "1")
    with pytest.raises(ConfigError, match=f"run XYZ: no such.*{a_ulid(31)}"):
        find_run(tmp_path, "XYZ")
    kill(recorder)


def test_no_run_at_all(tmp_path: Path) -> None:
    """An empty folder has no latest run, and the message says so."""
    with pytest.raises(ConfigError, match=f"run latest: no run in {tmp_path} yet"):
        find_run(tmp_path)


def test_a_folder_is_never_used_twice(tmp_path: Path) -> None:
    """A second run with the same id is refused before anything is written."""
    run = a_run(tmp_path, a_ulid(1))
    before = sorted(run.path.iterdir())
    with pytest.raises(ConfigError, match="cannot make the run's folder: File exists"):
        RunDir.create(tmp_path, RunStart(run_id=a_ulid(1), name="again", overrides=()), "")
    assert sorted(run.path.iterdir()) == before


def test_a_killed_run_keeps_what_it_had(tmp_path: Path) -> None:
    """Salvage makes the tables from the log: the ended requests as they were, the rest interrupted."""
    told = a_history(12)[:60]
    whole = a_run(tmp_path, a_ulid(1))
    run, recorder = a_run_under_way(tmp_path, a_ulid(2), told)
    kill(recorder)
    end = salvage(run)
    assert (end.status, end.verdict, run.end()) == ("interrupted", "INVALID", end)
    rows = pq.read_table(run.table("requests")).to_pylist()
    complete = pq.read_table(whole.table("requests")).to_pylist()
    ended = [row for row in rows if row["status"] == "finished"]
    assert ended == complete[: len(ended)] and ended
    assert {row["status"] for row in rows[len(ended) :]} == {"interrupted"}
    (row,) = pq.read_table(run.table("runs")).to_pylist()
    assert (row["status"], row["wall_s"], row["name"]) == ("interrupted", None, "trial")


def test_a_cut_log_is_salvaged_up_to_the_cut(tmp_path: Path) -> None:
    """A torn last frame costs its records, not the run."""
    run, recorder = a_run_under_way(tmp_path, a_ulid(1), a_history(4), a_header("live"))
    recorder.flush()
    for record in a_history(8)[28:]:
        recorder.record(*record)
    kill(recorder)
    content = run.log.read_bytes()
    run.log.write_bytes(content[:-5])
    assert "the log's last records are lost" in salvage(run).reasons
    assert pq.read_table(run.table("requests")).num_rows == 4


def test_salvage_takes_the_dead_action_socket_away(tmp_path: Path) -> None:
    """What a killed run left open is gone with the salvage; nothing else is."""
    run, recorder = a_run_under_way(tmp_path, a_ulid(1), a_history(4), a_header("live"))
    recorder.flush()
    kill(recorder)
    run.actions.touch()
    salvage(run)
    assert not run.actions.exists()


def test_salvage_leaves_other_runs_alone(tmp_path: Path) -> None:
    """A run that is going or has ended is not touched."""
    ended = a_run(tmp_path, a_ulid(1))
    with pytest.raises(ConfigError, match="has ended and needs no salvage"):
        salvage(ended)
    run, recorder = a_run_under_way(tmp_path, a_ulid(2))
    with pytest.raises(ConfigError, match="is still running"):
        salvage(run)
    recorder.finish("finished", BALANCED, wall_s=1.0)
    assert run.end() is not None


def test_a_run_says_where_its_numbers_come_from(tmp_path: Path) -> None:
    """Versions, processor and cores are recorded, without importing the libraries."""
    planned = Planned.of([a_request()], skipped_rows=3)
    start = run_start(a_ulid(1), "trial", ["policy.beta=2"], planned, sweep="trial-1")
    assert start.versions == library_versions()
    assert {"python", "msgspec", "pyarrow"} <= set(start.versions)
    assert start.cores and start.overrides == ("policy.beta=2",)
    assert (start.sweep, start.planned) == ("trial-1", planned)
    assert RunDir.create(tmp_path, start, "").start() == start
