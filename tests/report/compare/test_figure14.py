"""Fig. 14's table from stored runs: with against without at each rate, and what the copies cost."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded import a_copy
from tests.support.sweeps import BESIDES_S, REQUESTS, a_config, a_timed_run
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.domain.units import SECOND

OFF = {"inter": False, "intra": False, "reclaim": False}
COPIED = 2 * 2**20
"""Bytes of one copy."""


def leave_runs(runs_dir: Path, cells: Sequence[tuple[str, float, float]]) -> list[str]:
    """Leave two seeds of each (cache, rate, mean TTFT of the first seed) and return their ids.

    The second seed is twice as slow for everybody. Where there is a manager it copies once.
    """
    ids = []
    for cache, rate, ttft_s in cells:
        for seed in (0, 1):
            manager = OFF if cache == "off" else OFF | {"intra": True}
            config = a_config("paper", seed, cache={"manager": manager}, arrival={"rate": rate})
            words = (f"cache={cache}", f"arrival.rate={rate:g}", f"seed={seed}")
            copies = [] if cache == "off" else [a_copy(SECOND, reason="intra")]
            prefill_s = (1 + seed) * ttft_s - BESIDES_S
            # the arrivals are those of seed and rate
            shift_s = seed + round(rate)
            ids.append(
                a_timed_run(runs_dir, len(ids), words, config, prefill_s, shift_s=shift_s, also=copies)
            )
    return ids


def figure(runs_dir: Path, runs: Sequence[str], capsys: pytest.CaptureFixture[str]) -> Any:
    """Return the figure as JSON."""
    assert main(["compare", *runs, "--figure", "14", "--json", "--runs-dir", str(runs_dir)]) == OK
    return json.loads(capsys.readouterr().out)


def test_the_whole_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At each rate with against without, paired by seed; the paper's statements at 60 requests/s only."""
    runs = leave_runs(tmp_path, [("paper", 60, 4.5), ("off", 60, 5.0), ("paper", 30, 3.0), ("off", 30, 3.0)])
    found = figure(tmp_path, runs, capsys)
    cells = [(cell["rate"], cell["cache"], cell["is_off"]) for cell in found["cells"]]
    assert cells == [
        (30.0, "cache=off", True),
        (30.0, "cache=paper", False),
        (60.0, "cache=off", True),
        (60.0, "cache=paper", False),
    ]
    slow, fast = found["cells"][1], found["cells"][3]
    assert fast["mean_ttft"] == pytest.approx(1.5 * 4.5)
    assert fast["against_none"]["mean_ttft"]["ratio"] == pytest.approx(-0.1)
    assert fast["against_none"]["p90_ttft"]["pairs"] == 2
    assert slow["against_none"]["mean_ttft"]["ratio"] == pytest.approx(0.0)
    stated = [(each["rate"], each["metric"], each["change"], each["cache"]) for each in found["paper"]]
    assert stated == [
        (60.0, "mean_ttft", -0.103, "cache=paper"),
        (60.0, "p90_ttft", -0.187, "cache=paper"),
    ]
    assert found["paper"][0]["ratio"] == pytest.approx(-0.1)


def test_the_price_of_a_millisecond(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each seed copies 2 MiB; the requests of both save 0.5 s and 1 s each. Nothing saved has no price."""
    runs = leave_runs(tmp_path, [("off", 60, 5.0), ("paper", 60, 4.5), ("off", 30, 3.0), ("paper", 30, 3.0)])
    cells = {(cell["rate"], cell["is_off"]): cell for cell in figure(tmp_path, runs, capsys)["cells"]}
    dear, free, none = cells[60.0, False], cells[60.0, True], cells[30.0, False]
    assert (dear["replicated_bytes"], dear["fetched_bytes"]) == (COPIED, 0.0)
    assert dear["bytes_per_saved_ms"] == pytest.approx(2 * COPIED / (1_000 * REQUESTS * (0.5 + 1.0)))
    assert (free["replicated_bytes"], free["bytes_per_saved_ms"]) == (0.0, None)
    assert none["bytes_per_saved_ms"] is None


def test_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Simulated is said first; the paper's numbers are told as executed."""
    runs = leave_runs(tmp_path, [("off", 60, 5.0), ("paper", 60, 4.5)])
    assert main(["compare", *runs, "--figure", "14", "--runs-dir", str(tmp_path)]) == OK
    out = capsys.readouterr().out
    assert out.startswith("SIMULATED  the prefix manager against none\n")
    assert "The paper's statements (executed), and ours (simulated)" in out
    assert "-10.3 %" in out and "-10.0 % (-10.0, -10.0)" in out and "better" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--phase",), "--phase: has no effect with --figure 14"),
        (("--csv",), "--csv: Fig. 14 is several tables; allowed: --json"),
    ],
)
def test_flags_without_effect(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named, with what is allowed."""
    runs = leave_runs(tmp_path, [("off", 60, 5.0), ("paper", 60, 4.5)])
    assert main(["compare", *runs, "--figure", "14", *words, "--runs-dir", str(tmp_path)]) == BAD_INPUT
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cache", "said"),
    [
        ("off", "found 2 runs with cache=off and 0 with a prefix manager"),
        ("paper", "found 0 runs with cache=off and 2 with a prefix manager"),
    ],
)
def test_both_kinds_of_runs(
    cache: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the command that makes them."""
    runs = leave_runs(tmp_path, [(cache, 60, 5.0)])
    assert main(["compare", *runs, "--figure", "14", "--runs-dir", str(tmp_path)]) == BAD_INPUT
    err = capsys.readouterr().err
    assert said in err and "+experiment=cache_ablation -m" in err
