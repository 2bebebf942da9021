"""From stored runs to a comparison: who is in it, what it says, what it refuses."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from tests.support.recorded import a_header, a_history, a_run, a_run_under_way, a_ulid
from tests.support.sweeps import BESIDES_S, a_config, a_sweep, a_timed_run
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, OK


def compared(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    """Return the rows of ``compare WORDS --json``."""
    assert main(["compare", *words, "--json"]) == OK
    rows: list[dict[str, object]] = json.loads(capsys.readouterr().out)["rows"]
    return rows


def test_a_sweep_by_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three seeds, a third less TTFT each time: the numbers by hand, and the winner."""
    sweep = a_sweep(tmp_path, {"paper": [1.5, 4.5, 3.0], "homo": [0.5, 2.5, 1.5]})
    rows = compared(capsys, sweep, "--metric", "mean_ttft", "--runs-dir", str(tmp_path))
    assert [row["group"] for row in rows] == ["policy=paper", "policy=homo"]
    paper, homo = rows
    assert paper["value"] == pytest.approx(3.0 + BESIDES_S)
    assert (paper["ratio"], paper["mark"], homo["pairs"], homo["mark"]) == (None, None, 3, "best")
    ratio = (2.0 / 3.0) * (4.0 / 6.0) * (3.0 / 4.5)
    assert homo["ratio"] == pytest.approx(ratio ** (1 / 3) - 1)
    assert homo["difference"] == pytest.approx(-1.5)
    assert {row["execution"] for row in rows} == {"simulated"}


def test_the_text_and_the_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table with the baseline and the marks, how to read it, what is missing; CSV has the same rows."""
    a_sweep(tmp_path, {"paper": [1.5, 4.6, 3.0], "homo": [0.5, 2.5, 1.5, None]})
    assert main(["compare", "--runs-dir", str(tmp_path), "--metric", "mean_ttft"]) == OK
    out = capsys.readouterr().out
    table = [line.split() for line in out.splitlines()]
    assert table[0] == ["SIMULATED", "whole", "run", "baseline", "policy=paper"]
    assert ["policy=paper", "3", "4.533", "s", "baseline"] in table
    assert any(line[:3] == ["policy=homo", "3", "3"] and line[-1] == "best" for line in table)
    assert re.search(r"left out: 1 of 7 jobs of trial-\w+ has no run yet: policy=homo seed=3; --resume", out)
    assert main(["compare", "--runs-dir", str(tmp_path), "--metric", "mean_ttft", "--csv"]) == OK
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["group"], row["mark"]) for row in rows] == [("policy=paper", ""), ("policy=homo", "best")]


def test_each_phase_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Requests at 0, 10, 20 and 30 s: two in each phase of 20 s, and all in the whole run."""
    sweep = a_sweep(tmp_path, {"paper": [1.0, 1.0], "homo": [2.0, 2.0]})
    rows = compared(capsys, sweep, "--phase", "--runs-dir", str(tmp_path), "--metric", "mean_ttft,attainment")
    assert list(dict.fromkeys(row["stretch"] for row in rows)) == ["phase 1", "phase 2", "whole run"]
    means = {(row["stretch"], row["group"]): row["value"] for row in rows if row["metric"] == "mean_ttft"}
    assert set(means.values()) == {1.0 + BESIDES_S, 2.0 + BESIDES_S}
    assert {row["value"] for row in rows if row["metric"] == "attainment"} == {None}


def test_simulated_and_executed_runs_never_meet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind has its own table with its own baseline, whatever serves the same arrivals."""
    for number, (policy, backend, seconds) in enumerate(
        [("paper", "sim", 1.0), ("homo", "sim", 2.0), ("paper", "live", 5.0), ("homo", "live", 7.0)]
    ):
        words = (f"policy={policy}", f"backend={backend}")
        a_timed_run(tmp_path, number, words, a_config(policy, 0), seconds, backend=backend)
    runs = [a_ulid(number) for number in range(4)]
    rows = compared(capsys, *runs, "--by", "policy", "--metric", "mean_ttft", "--runs-dir", str(tmp_path))
    found = [(row["execution"], row["group"], row["difference"]) for row in rows]
    assert found == [
        ("simulated", "policy=paper", None),
        ("simulated", "policy=homo", pytest.approx(1.0)),
        ("executed", "policy=paper", None),
        ("executed", "policy=homo", pytest.approx(2.0)),
    ]


def test_a_refusal_says_what_was_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a sweep that was interrupted at its start: how many jobs have no run, and how it goes on."""
    sweep = a_sweep(tmp_path, {"paper": (0.5, None), "homo": (None, None)})
    for words in ([], ["--figure", "7-12"]):
        assert main(["compare", "latest", *words, "--runs-dir", str(tmp_path)]) == BAD_INPUT
        err = capsys.readouterr().err
        assert f"left out: 3 of 4 jobs of {sweep} have no run yet" in err
        assert f"--resume {sweep} goes on with them" in err


def test_runs_that_do_not_count_are_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """INVALID with its reason, one of an old version, one that is still running."""
    a_sweep(tmp_path, {"paper": [1.0, 2.0], "homo": [2.0, 3.0]})
    a_run(tmp_path, a_ulid(10), a_history(3)[:-2], a_header())
    a_run(tmp_path, a_ulid(11), a_history(3), a_header())
    recorder = a_run_under_way(tmp_path, a_ulid(12), a_history(3))[1]
    words = [a_ulid(10), a_ulid(11), a_ulid(12), "latest"]
    assert main(["compare", *words, "--runs-dir", str(tmp_path), "--json"]) == OK
    recorder.flush()
    left_out = json.loads(capsys.readouterr().out)["left_out"]
    assert [line[:26] for line in left_out] == [a_ulid(10), a_ulid(11), a_ulid(12)]
    assert "INVALID: 2 of 3 requests did not end" in left_out[0]
    assert "did not note its arrivals" in left_out[1]
    assert "has not ended" in left_out[2]


def test_runs_of_one_group_must_be_the_same_but_for_the_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file was edited between two runs that were asked for in the same words."""
    for number, (policy, seed, beta) in enumerate([("paper", 0, 1), ("homo", 0, 1), ("paper", 1, 2)]):
        config = a_config(policy, seed, policy={"name": policy, "beta": beta})
        a_timed_run(tmp_path, number, (f"policy={policy}", f"seed={seed}"), config, 1.0)
    assert main(["compare", *map(a_ulid, range(3)), "--runs-dir", str(tmp_path)]) == BAD_INPUT
    err = capsys.readouterr().err
    assert "are both policy=paper, but differ in policy.beta; compare them with: --by policy.beta" in err


def test_what_was_settled_when_a_run_started_may_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A first composition that a slice chose depends on the seed; that makes no other group."""
    for number, (policy, seed) in enumerate([("paper", 0), ("paper", 1), ("homo", 0), ("homo", 1)]):
        chosen = {"initial": {"reason": f"for seed {seed}"}, "cluster": {"composition": {"2": seed}}}
        config = a_config(policy, seed, **chosen)
        a_timed_run(
            tmp_path, number, (f"policy={policy}", f"seed={seed}"), config, 1.0 + number, shift_s=seed
        )
    rows = compared(capsys, *map(a_ulid, range(4)), "--runs-dir", str(tmp_path), "--metric", "mean_ttft")
    assert [row["runs"] for row in rows] == [2, 2]


BAD = [
    (("nowhere",), "compare nowhere: neither a sweep nor a run in"),
    (("nowhere",), "; the newest sweeps are: trial-"),
    (("--metric", "mean_tft"), "--metric mean_tft: no such metric; did you mean mean_ttft?"),
    (("--metric", "throughput", "--phase"), "--metric throughput: says nothing of a phase"),
    (("--baseline", "nobody"), "--baseline nobody: no such group; there are: policy=paper, policy=homo"),
    (("--baseline", "policy"), "--baseline policy: 2 groups fit"),
    (("--by", "seed"), "--by seed: runs are paired by their seeds"),
    (("--by", ""), "--by: found '', must be one name or more, with commas between"),
]


@pytest.mark.parametrize(("words", "said"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was found, what is allowed, nothing on stdout; exit 2."""
    a_sweep(tmp_path, {"paper": [1.0], "homo": [2.0]})
    assert main(["compare", *words, "--runs-dir", str(tmp_path)]) == BAD_INPUT
    out, err = capsys.readouterr()
    assert said in err and out == ""


def test_without_any_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing yet that "latest" could be."""
    assert main(["compare", "--runs-dir", str(tmp_path)]) == BAD_INPUT
    assert "compare latest: no sweep in" in capsys.readouterr().err


def test_arrivals_that_differ_cannot_be_paired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same seed at two loads, asked for by policy: refused with the reason."""
    a_timed_run(tmp_path, 0, ("policy=paper",), a_config("paper", 0), 1.0)
    a_timed_run(tmp_path, 1, ("policy=homo",), a_config("homo", 0), 1.0, shift_s=3)
    words = ["compare", a_ulid(0), a_ulid(1), "--by", "policy", "--runs-dir", str(tmp_path)]
    assert main(words) == BAD_INPUT
    assert "cannot be paired: policy=homo, seed 0: its arrivals are others" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"workload": {"name": "tool_agent"}}, "has no phases (workload tool_agent)"),
        ({"arrival": {"process": "trace", "rate": 3.0}}, "has arrival.rate=3.0, which moves arrivals"),
        ({"arrival": {"process": "poisson"}}, "has arrival.process=poisson, which moves arrivals"),
    ],
)
def test_phases_must_be_known(
    changes: dict[str, object], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where arrivals were moved nobody knows which phase they are of."""
    for number, policy in enumerate(("paper", "homo")):
        a_timed_run(tmp_path, number, (f"policy={policy}",), a_config(policy, 0, **changes), 1.0)
    assert main(["compare", a_ulid(0), a_ulid(1), "--phase", "--runs-dir", str(tmp_path)]) == BAD_INPUT
    assert said in capsys.readouterr().err
