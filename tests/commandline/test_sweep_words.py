"""Sweeps as they are typed: which jobs, which are refused, how they end."""

import re
from pathlib import Path

import pytest

from tests.support.commands import SIM
from vertumnus import sweep
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT, FAILED, INTERRUPTED, INVALID, OK
from vertumnus.config import RunConfig
from vertumnus.sweep import Ending, Sweep


def test_a_sweep_runs_every_combination(ran: list[RunConfig], capsys: pytest.CaptureFixture[str]) -> None:
    """2 policies x 3 seeds, the last key fastest; a closing table shows what varied."""
    assert main([*SIM, "-m", "policy=paper,round_robin", "seed=range(3)"]) == OK
    assert [config.seed for config in ran] == [0, 1, 2, 0, 1, 2]
    assert len({config.policy for config in ran}) == 2
    table = capsys.readouterr().out.splitlines()
    assert table[0].split()[:4] == ["job", "overrides", "status", "verdict"]
    assert table[6].split() == ["6", "policy=round_robin", "seed=2", "finished", "VALID"]


@pytest.mark.parametrize(
    ("endings", "is_interrupted", "code"),
    [
        ((Ending("finished", None, "VALID"), Ending("done before", None, "VALID")), False, OK),
        ((Ending("finished", None, "VALID"), Ending("finished", None, "INVALID")), False, INVALID),
        ((Ending("failed", None, "INVALID"), Ending("finished", None, "INVALID")), False, FAILED),
        ((Ending("finished", None, "VALID"), Ending("bad input")), False, FAILED),
        ((Ending("finished", None, "VALID"),), True, INTERRUPTED),
    ],
)
def test_the_exit_code_says_how_a_sweep_ended(
    endings: tuple[Ending, ...],
    is_interrupted: bool,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The worst of its jobs; an interrupt is 130, and what had not started is shown as that."""
    ended = Sweep("trial-0", dict(enumerate(endings, 1)), is_interrupted)
    monkeypatch.setattr(sweep, "run_sweep", lambda *given, **flags: ended)
    assert main([*SIM, "-m", "seed=0,1"]) == code
    assert ("not started" in capsys.readouterr().out) == is_interrupted


BAD_SWEEPS = [
    (
        ("policy.beta=0.5,2,0.6", "seed=0,1"),
        ["job 1 (policy.beta=0.5 seed=0) and 1 more job: policy.beta: must be at least 1, got 0.5",
         "job 5 (policy.beta=0.6 seed=0) and 1 more job: policy.beta: must be at least 1, got 0.6"],
    ),
    (("policy.beta=0.5", "seed=0,1"), ["policy.beta: must be at least 1, got 0.5"]),
    (
        ("seed=0,1,0",),
        ["job 3 (seed=0): has the same configuration as job 1"],
    ),
    (("runs_dir=a,b",), ["job 2 (runs_dir=b): runs_dir: found b and a, a sweep has one folder"]),
    (
        ("cluster.blocks_per_rank=8,4000", "workload.path=null,gone.jsonl"),
        ["job 1 (cluster.blocks_per_rank=8 workload.path=null): cluster.blocks_per_rank: found 8; request",
         "job 2 (cluster.blocks_per_rank=8 workload.path=gone.jsonl) and 1 more job: workload.path: "],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("words", "said"), BAD_SWEEPS, ids=[" ".join(words) for words, _ in BAD_SWEEPS])
def test_a_sweep_with_a_bad_job_starts_nothing(
    words: tuple[str, ...],
    said: list[str],
    elsewhere: Path,
    ran: list[RunConfig],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every problem once, with the job that has it; exit 2, nothing runs, nothing is written."""
    assert main([*SIM, "workload.requests=100", "-m", *words]) == BAD_INPUT
    err = capsys.readouterr().err
    assert [line for line in said if line not in err] == []
    assert len(err.splitlines()) == (1 if len(said) == 1 else 1 + len(said))
    assert (ran, list(elsewhere.iterdir())) == ([], [])


@pytest.mark.parametrize("words", [("-m",), ("--jobs", "2", "-m"), ("-m", "--again")])
def test_a_sweep_of_nothing_is_refused(
    words: tuple[str, ...], ran: list[RunConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    """As nothing typed at all runs nothing: the default job would start ranks on this machine."""
    assert main(words) == BAD_INPUT
    assert capsys.readouterr().err.startswith(
        "error: -m: found no override, and nothing declares a sweep; name"
    )
    assert ran == []


def test_a_sweep_of_nothing_can_be_looked_at(
    ran: list[RunConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    """What starts nothing shows the default job."""
    assert main(["-m", "--dry-run"]) == OK
    assert "backend    live: executed on this machine" in capsys.readouterr().out
    assert main(["-m", "--cfg", "job"]) == OK
    assert "name: unnamed" in capsys.readouterr().out and ran == []


def test_each_plan_of_a_sweep_says_whose_it_is(
    ran: list[RunConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan of a job stands below what it changes; of a single job there is nothing to tell apart."""
    words = ["backend=sim", "workload.requests=200", "-m", "--dry-run"]
    assert main([*words, "policy=paper,lmetric", "seed=3"]) == OK
    first, second = re.split(r"^job ", capsys.readouterr().out, flags=re.MULTILINE)[1:]
    assert first.startswith("1 of 2: policy=paper\n") and "\npolicy     paper" in first
    assert second.startswith("2 of 2: policy=lmetric\n") and "\npolicy     lmetric" in second
    assert main([*words, "seed=3"]) == OK
    assert "job 1" not in capsys.readouterr().out and ran == []


def test_a_sweep_that_the_users_config_declares_needs_no_words(elsewhere: Path, ran: list[RunConfig]) -> None:
    """With ./conf/config.yaml in the place of the packaged one."""
    (elsewhere / "conf").mkdir()
    packaged = Path(__file__).parents[2] / "conf" / "config.yaml"
    (elsewhere / "conf" / "config.yaml").write_text(f"{packaged.read_text()}\nsweep:\n  - {{seed: [4, 5]}}\n")
    assert main(["-m"]) == OK
    assert [config.seed for config in ran] == [4, 5]
