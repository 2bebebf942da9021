"""The order of policies as simulated beside their order as executed, from stored runs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.sweeps import a_config, a_timed_run
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK

Prefills = Mapping[str, Sequence[float]]
"""Prefill times by policy, one a seed [s]; every request's TTFT is that and 1.5 s."""


def leave_runs(runs_dir: Path, simulated: Prefills, executed: Prefills) -> list[str]:
    """Leave a run of each policy, seed and execution and return their ids."""
    ids: list[str] = []
    for backend, prefills in (("sim", simulated), ("live", executed)):
        for policy, of in prefills.items():
            for seed, prefill_s in enumerate(of):
                config = a_config(policy, seed, backend={"kind": backend})
                words = (f"policy={policy}", f"seed={seed}", f"backend={backend}")
                ids.append(
                    a_timed_run(runs_dir, len(ids), words, config, prefill_s, backend=backend, shift_s=seed)
                )
    return ids


def ranking(runs_dir: Path, runs: Sequence[str], capsys: pytest.CaptureFixture[str]) -> Any:
    """Return the ranking by mean TTFT as JSON."""
    assert main(["compare", *runs, "--figure", "ranking", "--json", "--runs-dir", str(runs_dir)]) == OK
    return json.loads(capsys.readouterr().out)["orders"][0]


SIMULATED = {"slow": (3.5, 3.5, 3.5), "fast": (0.5, 0.5, 0.5), "medium": (1.5, 1.5, 1.5)}


def test_the_same_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Groups are listed and ranked in the simulated order; every pair stands in it when executed, too."""
    executed = {"slow": (6.5, 6.6, 6.7), "fast": (1.5, 1.6, 1.7), "medium": (2.5, 2.6, 2.7)}
    order = ranking(tmp_path, leave_runs(tmp_path, SIMULATED, executed), capsys)
    assert [place["group"] for place in order["places"]] == ["policy=fast", "policy=medium", "policy=slow"]
    assert [place["ranks"] for place in order["places"]] == [
        {"simulated": rank, "executed": rank} for rank in (1, 2, 3)
    ]
    assert order["places"][0]["values"] == pytest.approx({"simulated": 2.0, "executed": 3.1})
    assert [(pair["better"], pair["other"]) for pair in order["pairs"]] == [
        ("policy=fast", "policy=medium"),
        ("policy=fast", "policy=slow"),
        ("policy=medium", "policy=slow"),
    ]
    assert {pair["verdict"] for pair in order["pairs"]} == {"same order"}
    first = order["pairs"][0]
    assert first["simulated"]["ratio"] == pytest.approx(0.5)  # 3.0 s against 2.0 s


@pytest.mark.parametrize(
    ("medium_s", "verdict"),
    [
        ((0.5, 0.6, 0.5), "other order"),
        ((0.5, 3.5, 1.5), "executed not told apart"),
        ((3.5, 3.6, 3.5), "same order"),
    ],
)
def test_what_the_executed_runs_say(
    medium_s: Sequence[float], verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pair stands as simulated, the other way round, or is within the interval when executed."""
    simulated = {name: SIMULATED[name] for name in ("fast", "medium")}
    executed = {"fast": (1.5, 1.5, 1.6), "medium": medium_s}
    (pair,) = ranking(tmp_path, leave_runs(tmp_path, simulated, executed), capsys)["pairs"]
    assert pair["verdict"] == verdict


def test_equals_in_the_simulator_are_no_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the simulator tells two policies not apart there is nothing to confirm."""
    simulated = {"a": (0.5, 1.5, 2.5), "b": (1.5, 0.5, 2.5)}
    executed = {"a": (0.5, 0.5, 0.5), "b": (1.5, 1.6, 1.5)}
    (pair,) = ranking(tmp_path, leave_runs(tmp_path, simulated, executed), capsys)["pairs"]
    assert pair["verdict"] == "simulated not told apart"


def test_the_table_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A policy that was not executed has a place without a rank, and makes no pair."""
    executed = {name: SIMULATED[name] for name in ("fast", "slow")}
    runs = leave_runs(tmp_path, SIMULATED, executed)
    assert main(["compare", *runs, "--figure", "ranking", "--runs-dir", str(tmp_path)]) == OK
    shown = capsys.readouterr().out
    assert "mean TTFT, simulated beside EXECUTED" in shown
    assert "policy=slow against policy=fast" in shown
    assert "policy=medium against" not in shown
    (medium, *_) = [line.split() for line in shown.splitlines() if "policy=medium" in line]
    assert medium == ["policy=medium", "3.000", "s", "2", "3", "no", "data", "0"]


@pytest.mark.parametrize(
    ("simulated", "executed", "told"),
    [
        (SIMULATED, {}, "found 9 simulated runs and 0 executed runs, needs both"),
        (
            {"slow": (1.0,), "fast": (0.5,)},
            {"other": (1.0,), "fast": (0.5,)},
            "simulated: policy=fast, policy=slow; executed: policy=fast, policy=other",
        ),
    ],
)
def test_what_cannot_be_ranked(
    simulated: Prefills, executed: Prefills, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs of one kind alone, or without two groups in common, are refused with what was found."""
    runs = leave_runs(tmp_path, simulated, executed)
    assert main(["compare", *runs, "--figure", "ranking", "--runs-dir", str(tmp_path)]) == BAD_INPUT
    assert told in capsys.readouterr().err
