"""The ablation's table from stored runs: variants by their switches, against all of them off."""

import json
from pathlib import Path

import pytest

from tests.support.sweeps import BESIDES_S, a_config, a_timed_run
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.report.compare.ablation import SWITCHES

TTFT_S = {"ABCDE": 2.0, "": 4.0, "B": 3.6, "AB": 3.0, "ABCD": 2.2, "BCDE": 2.4}


def leave_runs(runs_dir: Path, ttft_s: dict[str, float] = TTFT_S, policy: str = "vertumnus") -> list[str]:
    """Leave two seeds of each variant, by its letters, and return their ids."""
    ids: list[str] = []
    for letters, first_s in ttft_s.items():
        switches = {key: letter in letters for letter, key in SWITCHES.items()}
        for seed in (1, 2):
            config = a_config(policy, seed, policy={"name": policy, **switches})
            words = (*(f"policy.{key}={on}" for key, on in switches.items()), f"seed={seed}")
            seconds = first_s * (1.0 if seed == 1 else 1.5) - BESIDES_S
            ids.append(a_timed_run(runs_dir, len(ids), words, config, seconds, shift_s=seed))
    return ids


def test_variants_are_told_in_order_against_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Added up, one at a time, all but one; 2 s against 4 s is half."""
    runs = leave_runs(tmp_path)
    assert main(["compare", *runs, "--figure", "ablation", "--json", "--runs-dir", str(tmp_path)]) == OK
    found = json.loads(capsys.readouterr().out)
    means = [row for row in found["rows"] if row["metric"] == "mean_ttft"]
    assert [row["switches"] for row in means] == ["", "AB", "ABCD", "ABCDE", "B", "BCDE"]
    assert [row["ratio"] for row in means] == [
        None,
        *(pytest.approx(TTFT_S[letters] / 4.0 - 1) for letters in ("AB", "ABCD", "ABCDE", "B", "BCDE")),
    ]


def test_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Letters in their places, and the difference with its interval."""
    runs = leave_runs(tmp_path)
    assert main(["compare", *runs, "--figure", "ablation", "--runs-dir", str(tmp_path)]) == OK
    out = capsys.readouterr().out
    assert out.startswith("SIMULATED  mean TTFT\n")
    assert "A B - - -" in out and "- B C D E" in out and "-50.0 % (" in out


@pytest.mark.parametrize(
    ("ttft_s", "policy", "said"),
    [
        ({"": 4.0, "A": 3.0}, "paper", "has policy=paper; needs runs of policy=vertumnus alone"),
        ({"A": 3.0, "B": 3.0}, "vertumnus", "no run with all switches off"),
    ],
)
def test_what_is_missing_is_told(
    ttft_s: dict[str, float], policy: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is compared with nothing."""
    runs = leave_runs(tmp_path, ttft_s, policy)
    assert main(["compare", *runs, "--figure", "ablation", "--runs-dir", str(tmp_path)]) == BAD_INPUT
    assert said in capsys.readouterr().err
