"""Figs. 7-12's tables from stored runs: margins, the strongest of the others, gains beside the paper's."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.support.sweeps import BESIDES_S, a_config, a_timed_run
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.records.run_dir import find_run
from vertumnus.report.compare.comparison import run_values
from vertumnus.report.compare.members import find_members
from vertumnus.report.compare.metrics import METRICS

TTFT_S = {"vertumnus": 2.5, "paper_tuned": 3.5, "static_tuned": 4.0, "lmetric": 3.2, "homo": 5.0}
"""Of the first seed; the second one is half as slow again, for everybody."""


def leave_runs(
    runs_dir: Path,
    level: str = "highest",
    ttft_s: dict[str, float] = TTFT_S,
    *,
    first: int = 0,
    **changes: Any,
) -> list[str]:
    """Leave two seeds of each policy in a cell and return their ids; *changes* are of all configs."""
    ids: list[str] = []
    for policy, first_s in ttft_s.items():
        for seed in (1, 2):
            words = (f"policy={policy}", "cell=qwen_l_eval", f"grid.level={level}", f"seed={seed}")
            seconds = first_s * (1.0 if seed == 1 else 1.5) - BESIDES_S
            config = a_config(policy.removesuffix("_tuned"), seed, **changes)
            ids.append(a_timed_run(runs_dir, first + len(ids), words, config, seconds, shift_s=seed))
    return ids


def grid_of(runs_dir: Path, runs: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the grid's tables as plain values."""
    assert main(["compare", *runs, "--figure", "7-12", "--json", "--runs-dir", str(runs_dir)]) == OK
    return dict(json.loads(capsys.readouterr().out))


def test_margins_and_gains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2.5 s against 3.5 s of paper and 3.2 s of the best other; paper's 3.5 s against static's 4 s."""
    found = grid_of(tmp_path, leave_runs(tmp_path), capsys)
    means = [each for each in found["margins"] if each["metric"] == "mean_ttft"]
    assert [(each["policy"], each["against"]) for each in means] == [
        ("vertumnus", "paper_tuned"),
        ("vertumnus", "lmetric"),
    ]
    assert [each["ratio"] for each in means] == [pytest.approx(2.5 / 3.5 - 1), pytest.approx(2.5 / 3.2 - 1)]
    gains = {each["metric"]: each for each in found["gains"]}
    assert {metric: each["change"] for metric, each in gains.items()} == {
        "mean_ttft": -0.139,
        "p90_ttft": -0.178,
        "attainment": 0.009,
    }
    assert {each["against"] for each in gains.values()} == {"static_tuned"}  # lmetric is none of the paper's
    assert gains["mean_ttft"]["ratio"] == pytest.approx(3.5 / 4.0 - 1)
    assert gains["mean_ttft"]["parts"]["prefill"] == pytest.approx(1.25 * (3.5 - 4.0))
    assert gains["p90_ttft"]["parts"] == {}
    (value,) = (
        each["value"] for each in found["values"] if (each["policy"], each["metric"]) == ("homo", "mean_ttft")
    )
    assert value == pytest.approx(5.0 * 1.25)


def test_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it is first, the best policy starred, the paper's number beside ours."""
    runs = leave_runs(tmp_path)
    assert main(["compare", *runs, "--figure", "7-12", "--runs-dir", str(tmp_path)]) == OK
    out = capsys.readouterr().out
    assert out.startswith("SIMULATED  qwen_l_eval  mean TTFT by requests/s\n")
    assert "3.125 s *" in out and "-13.9 %" in out and "-12.5 % (" in out
    assert "Open loop" in out


def test_closed_loop_is_told_and_kept_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables say how requests came; runs of both kinds in one table are refused."""
    two = {policy: TTFT_S[policy] for policy in ("vertumnus", "paper_tuned")}
    closed = leave_runs(tmp_path, ttft_s=two, arrival={"closed_loop": True})
    assert main(["compare", *closed, "--figure", "7-12", "--runs-dir", str(tmp_path)]) == OK
    out = capsys.readouterr().out
    assert "Closed loop" in out and "Open loop" not in out
    runs = [*closed, *leave_runs(tmp_path, ttft_s=two, first=len(closed))]
    assert main(["compare", *runs, "--figure", "7-12", "--runs-dir", str(tmp_path)]) == BAD_INPUT
    assert "in open and in closed loop" in capsys.readouterr().err


def test_only_the_highest_rate_has_statements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At others our margins are told alone."""
    found = grid_of(tmp_path, leave_runs(tmp_path, level="low"), capsys)
    assert found["gains"] == [] and len(found["margins"]) == 2 * 4


def test_a_part_of_the_grid_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the published policy there is a margin over the best of the others, and no gain."""
    runs = leave_runs(tmp_path, ttft_s={"vertumnus": 2.5, "lmetric": 3.2})
    found = grid_of(tmp_path, runs, capsys)
    assert {each["against"] for each in found["margins"]} == {"lmetric"} and found["gains"] == []


def test_runs_of_something_else_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the run, what it lacks, and the command that makes what is needed."""
    run = a_timed_run(tmp_path, 0, ("policy=paper", "seed=1"), a_config("paper", 1), 2.0)
    assert main(["compare", run, "--figure", "7-12", "--runs-dir", str(tmp_path)]) == BAD_INPUT
    assert f"{run} names no cell, grid.level and policy" in capsys.readouterr().err


def test_attainment_of_long_prompts_is_counted_from_the_requests(tmp_path: Path) -> None:
    """Tokens of measured prompts of 32K and more within target, over all of theirs; no column has it."""
    words = ["+experiment=tool_agent", "backend=sim", "workload.requests=500", "arrival.rate=200"]
    assert main([*words, f"runs_dir={tmp_path}"]) == OK
    (run,) = find_members(tmp_path, [find_run(tmp_path, "latest").run.run_id]).runs
    rows = pq.read_table(tmp_path / run.run_id / "requests.parquet").to_pylist()
    longs = [row for row in rows[75:] if row["input_tokens"] >= 32_768]
    met = sum(row["input_tokens"] for row in longs if row["slo_met"])
    assert 0 < met < sum(row["input_tokens"] for row in longs)
    found = run_values(tmp_path, [run], [METRICS["long_attainment"], METRICS["attainment"]])
    assert found[run.run_id, "long_attainment"] == pytest.approx(met / sum(r["input_tokens"] for r in longs))
    assert found[run.run_id, "attainment"] == run.row["slo_attainment"]
