"""Forecasts in whole simulated runs: what_if, advise, and the verb preview on what they leave behind."""

import json
from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from vertumnus.cli import main
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.domain.codec import Record
from vertumnus.domain.facts import ForecastFinished, TimerFired
from vertumnus.domain.orders import CloseTransition, Forecast, NoteWindow, SetTimer
from vertumnus.records.log import read_log
from vertumnus.records.run_dir import RunDir, find_run
from vertumnus.run.asked import Asked
from vertumnus.run.audit import audit_run
from vertumnus.run.execute import execute

SMALL = (
    "+experiment=reconfigure",
    "workload.phases=[{duration_s: 30, rate: 8.5}, {duration_s: 40, rate: 30, long_share: 0.0}]",
    "workload.requests=700",
)


def run(runs_dir: Path, *words: str) -> RunDir:
    """Run a minute of a rising load with *words* and return its folder."""
    with hydra_configs():
        config = to_run_config(plain_tree(composed((*SMALL, f"runs_dir={runs_dir}", *words))))
    outcome = execute(config, Asked(words), Console(file=StringIO()))
    assert (outcome.status, outcome.verdict) == ("finished", "VALID")
    return find_run(runs_dir, outcome.run_id).run


def records(folder: RunDir) -> list[Record]:
    """Return the log of a run."""
    return list(read_log(folder.log).records)


@pytest.fixture(scope="module")
def moved(tmp_path_factory) -> RunDir:
    """A what_if run that is quick to move."""
    words = (
        "controller=what_if",
        "controller.window_s=10",
        "controller.replay_s=10",
        "controller.horizon_s=10",
        "controller.load=1.0",
        "controller.min_gain=0.0",
        "workload.requests=900",
    )
    return run(tmp_path_factory.mktemp("what_if"), *words)


def test_a_what_if_run_moves_and_replays(moved) -> None:
    """It changes the composition by forecasts, and neither replay of its log computes one anew."""
    bodies = [record.body for record in records(moved)]
    assert any(isinstance(body, CloseTransition) for body in bodies)
    assert any(isinstance(body, ForecastFinished) for body in bodies)
    audit = audit_run(moved)
    assert audit.is_clean and audit.records == len(bodies)


def test_its_decisions_are_rows(moved) -> None:
    """Each answered forecast has a row for staying and each move; made is what was done; windows name it."""
    rows = pq.read_table(moved.table("forecasts")).to_pylist()
    windows = pq.read_table(moved.table("windows")).to_pylist()
    reconfigs = pq.read_table(moved.table("reconfigs")).to_pylist()
    for number in {row["forecast_id"] for row in rows}:
        mine = [row for row in rows if row["forecast_id"] == number]
        assert mine[0]["move"] is None and sum(row["made"] for row in mine) == 1
    made = [row["move"] for row in rows if row["made"] and row["move"] is not None]
    assert made == [window["action"] for window in windows if window["action"]]
    assert len(made) >= len(reconfigs) > 0
    assert {row["answer_s"] for row in rows} == {0.0}


def test_what_was_predicted_comes_where_demand_stays(moved, capsys) -> None:
    """A forecast with past and future in one phase is near the observed mean; counts tell the others."""
    assert main(["report", "forecasts", moved.run_id, "--runs-dir", str(moved.path.parent), "--json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out) if row["stay_ttft_s"] is not None]
    assert all(row["gain"] == 1 - row["move_ttft_s"] / row["stay_ttft_s"] for row in rows)
    first = {row["t_s"]: row for row in rows}
    for at_s in (10, 20, 40):  # spans of 10 s; the rate changes at 30 s
        assert 0.5 < first[at_s]["observed_ttft_s"] / first[at_s]["stay_ttft_s"] < 2
        assert 0.7 < first[at_s]["observed_requests"] / first[at_s]["requests"] < 1.4
    assert first[30]["observed_requests"] > 2 * first[30]["requests"]
    assert first[50]["observed_ttft_s"] is None  # the last request comes before 60 s


def test_a_forecast_takes_the_time_that_is_stated(tmp_path) -> None:
    """With backend.forecast_s the answer, and the move, come so much later."""
    words = (
        "controller=what_if",
        "controller.min_gain=0.0",
        "backend.forecast_s=1.5",
        "workload.requests=250",
    )
    rows = pq.read_table(run(tmp_path, *words).table("forecasts")).to_pylist()
    assert rows and {row["answer_s"] for row in rows} == {1.5}


@pytest.fixture(scope="module")
def advised(tmp_path_factory) -> RunDir:
    """An advise run that is quick to advise."""
    words = ("window_s=10", "upper=0.5", "lower=0.1", "persistence=1", "replay_s=15")
    words = ("controller=advise", *(f"controller.{word}" for word in words))
    return run(tmp_path_factory.mktemp("advise"), *words)


def test_advice_touches_nothing(advised, tmp_path) -> None:
    """The log of an advise run is that of a manual one, but for windows, forecasts and their timers."""
    plain = records(run(tmp_path / "manual", "controller=manual"))
    told = records(advised)
    assert [record for record in told if not _is_advice(record)] == plain
    rows = pq.read_table(advised.table("forecasts")).to_pylist()
    later = [row for row in rows if row["hindsight_of"] is not None]
    assert {row["hindsight_of"] for row in later} <= {row["forecast_id"] for row in rows} and later
    assert audit_run(advised).is_clean


def _is_advice(record: Record) -> bool:
    body = record.body
    if isinstance(body, TimerFired | SetTimer):
        return body.name.startswith(("window", "hindsight"))
    return isinstance(body, NoteWindow | Forecast | ForecastFinished)


def test_hindsight_says_what_then_really_would_have_been(advised, capsys) -> None:
    """Staying, in hindsight, on the true arrivals, is what was observed, within the simulator's noise."""
    capsys.readouterr()
    main(["report", "forecasts", advised.run_id, "--runs-dir", str(advised.path.parent), "--json"])
    answered = [row for row in json.loads(capsys.readouterr().out) if row["hindsight_gain"] is not None]
    rows = [row for row in answered if row["observed_ttft_s"] is not None]
    assert rows
    for row in rows:
        assert row["hindsight_stay_ttft_s"] == pytest.approx(row["observed_ttft_s"], rel=0.1)


def test_a_preview_is_what_then_happens(tmp_path, capsys) -> None:
    """The preview of a split at 40 s is the drain and switch of the run in which it is made there."""
    still = run(tmp_path / "still", "controller=manual")
    script = "controller.script=[{at_s: 40, action: split, workers: [0x8]}]"
    made = run(tmp_path / "made", "controller=manual", script)
    words = ["preview", "split", "0x8", "--run", still.run_id, "--runs-dir", str(still.path.parent)]
    capsys.readouterr()
    assert main([*words, "--at", "40", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    (row,) = pq.read_table(made.table("reconfigs")).to_pylist()
    assert seen["switch_s"] == row["switch_s"]
    assert seen["drain_s"] == pytest.approx(row["drain_s"], abs=0.2)
    assert (seen["move"], seen["at_s"], seen["span_s"]) == ("split 0x8 -> 0x4 + 4x4", 40.0, 40.0)
    assert seen["missing_blocks"] > 0 and seen["missing_bytes"] == seen["missing_blocks"] * 512 * 13_000
    assert main([*words, "--at", "40"]) == 0
    assert "PREDICTED  split 0x8 -> 0x4 + 4x4  at 40.000 s" in capsys.readouterr().out


def test_a_log_that_still_grows_can_be_previewed(moved_still, tmp_path, capsys) -> None:
    """What is whole of it counts; without --at the latest instant that it tells."""
    (whole,) = [folder for folder in moved_still.iterdir() if folder.is_dir()]
    cut = tmp_path / whole.name
    cut.mkdir()
    (cut / "_STARTED.json").write_bytes((whole / "_STARTED.json").read_bytes())
    (cut / "facts.log").write_bytes((whole / "facts.log").read_bytes()[:-50])
    told = []
    for folder in (whole, cut):
        assert main(["preview", "split", "0x8", "--runs-dir", str(folder.parent), "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[1]["at_s"] < told[0]["at_s"] and told[1]["move"] == told[0]["move"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["split", "0x4"], "split 0x4: there is no worker 0x4; in its place: 0x8"),
        (["split", "99x4"], "there is no worker 99x4; in service: 0x8, 8x8, 16x8, 24x4, 28x4, 32x4, 36x4"),
        (["split", "3x3"], "there is no worker 3x3; in its place: 0x8"),
        (
            ["split", f"0x{2**60}"],
            f"no worker 0x{2**60}; in its place: 0x8, 8x8, 16x8, 24x4, 28x4, 32x4, 36x4",
        ),
        (["split", "24x4"], "degree 2 is not supported; allowed: [4, 8]"),
        (["split", "24x8"], "there is no worker 24x8; in its place: 24x4, 28x4"),
        (["merge", "0x8", "8x8"], "0x16 would not fit a node of 8 ranks"),
        (["merge", "24x4", "32x4"], "24x4 and 32x4 are not siblings"),
        (["merge", "24x4"], "found 1 worker, a merge takes 2"),
        (["split", "eight"], "WORKER: found eight, must be <first rank>x<degree> as 0x4"),
        (["drain", "0x8"], "kind: found drain, must be one of split, merge"),
        (["split", "0x8", "--at", "-1"], "found -1, must be seconds on the run's clock, from 0 to 1e9"),
        (["split", "0x8", "--at", "nan"], "found nan"),
        (["split", "0x8", "--at", "1e6"], "found 1e+06 s, but the log of run"),
        (["split", "0x8", "--replay", "0"], "found 0, must be above 0 and at most 300"),
        (["split", "0x8", "--run", "nowhere"], "no such finished run"),
    ],
)
def test_what_cannot_be_previewed_is_refused(moved_still, words, says, capsys) -> None:
    """Exit code 2, the reason, and nothing on stdout."""
    assert main(["preview", *words, "--runs-dir", str(moved_still)]) == 2
    out, err = capsys.readouterr()
    assert not out and says in err


@pytest.fixture(scope="module")
def moved_still(tmp_path_factory) -> Path:
    """The folder of a short run at 4 x CP4 + 3 x CP8."""
    folder = tmp_path_factory.mktemp("still")
    run(folder, "controller=off", "workload.requests=60")
    return folder
