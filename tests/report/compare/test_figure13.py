"""Fig. 13's table from stored runs: who is fixed, what stands beside the paper, what is refused."""

import json
from pathlib import Path

import pytest

from tests.support.recorded import a_ulid
from tests.support.sweeps import BESIDES_S, leave_runs
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK


def test_the_whole_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """3.5 s against 4.5 and 5.5 s in both phases: the best fixed, the paper's statement, the moves."""
    runs = leave_runs(tmp_path)
    assert main(["compare", *runs, "--figure", "13", "--json", "--runs-dir", str(tmp_path)]) == OK
    found = json.loads(capsys.readouterr().out)
    assert (found["execution"], found["left_out"]) == ("simulated", [])
    adaptive = next(group for group in found["against_best_fixed"])
    assert found["mean_ttft_s"][adaptive]["phase 2"] == pytest.approx(1.5 * (2.0 + BESIDES_S))
    best = found["against_best_fixed"][adaptive]["whole run"]
    assert (best["composition"], best["pairs"]) == ("4 x CP4 + 3 x CP8", 2)
    assert best["ratio"] == pytest.approx(3.5 / 4.5 - 1)
    stated = [(each["stretch"], each["composition"], each["change"]) for each in found["paper"]]
    assert stated == [("phase 2", "4 x CP4 + 3 x CP8", -0.196)]
    assert found["paper"][0]["ratio"] == pytest.approx(3.5 / 4.5 - 1)
    (moves,) = found["moves"]
    assert (moves["group"], moves["moves"], moves["reversals"]) == (adaptive, 1.0, 0)
    assert moves["first_s"] == [[pytest.approx(5.0), pytest.approx(5.0)]]


def test_phases_that_the_runs_did_not_reach_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs cut short after two of three phases: the table is that of two."""
    runs = leave_runs(tmp_path, phases=3)
    assert main(["compare", *runs, "--figure", "13", "--json", "--runs-dir", str(tmp_path)]) == OK
    found = json.loads(capsys.readouterr().out)
    for of_group in (*found["mean_ttft_s"].values(), *found["against_best_fixed"].values()):
        assert list(of_group) == ["phase 1", "phase 2", "whole run"]


def test_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Simulated is said first, the paper's numbers are told as executed, delays in windows."""
    runs = leave_runs(tmp_path)
    assert main(["compare", *runs, "--figure", "13", "--runs-dir", str(tmp_path)]) == OK
    out = capsys.readouterr().out
    assert out.startswith("SIMULATED  mean TTFT by phase\n")
    assert "The paper's statements (executed), and ours (simulated)" in out
    assert "-19.6 %" in out and "1.0 (1.0) windows" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--phase",), "--phase: has no effect with --figure 13"),
        (("--by", "policy"), "--by: has no effect with --figure 13"),
        (("--csv",), "--csv: Fig. 13 is several tables; allowed: --json"),
        (("--figure", "12"), "--figure: found 12, must be one of 7-12, 13,"),
    ],
)
def test_flags_that_do_not_go_together(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named, with what is allowed."""
    runs = leave_runs(tmp_path)
    assert main(["compare", *runs, "--figure", "13", *words, "--runs-dir", str(tmp_path)]) == BAD_INPUT
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("kinds", "said"), [(("off",), "found 4 runs with controller=off and 0 others")])
def test_both_kinds_of_runs_are_needed(
    kinds: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the command that makes them."""
    runs = leave_runs(tmp_path, kinds=kinds)
    assert main(["compare", *runs, "--figure", "13", "--runs-dir", str(tmp_path)]) == BAD_INPUT
    err = capsys.readouterr().err
    assert said in err and "+experiment=reconfigure -m" in err
    assert a_ulid(0) == runs[0]
