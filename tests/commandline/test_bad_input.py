"""What cannot be done as typed: one clear message, exit code 2, nothing started."""

from pathlib import Path

import pytest

from tests.support.commands import SIM
from vertumnus.cli import main
from vertumnus.commandline.exit_codes import BAD_INPUT
from vertumnus.config import RunConfig

BAD = [
    ((*SIM, "policy.betta=2"), "policy.betta: unknown key for policy vertumnus; did you mean policy.beta?"),
    ((*SIM, "polcy=static"), "polcy: unknown key; did you mean policy?"),
    ((*SIM, "cluster.gpus=41"), "cluster.composition: the degrees add up to 40 (4*2 + 8*4), must equal"),
    (
        (*SIM, "cluster.composition={8: 5}"),
        "cluster.composition.8: degree 8 is not supported here; allowed: [2, 4]",
    ),
    ((*SIM, "cluster.degrees=[2,3,4]"), "cluster.degrees: found 3, each degree must be a power of two"),
    ((*SIM, "arrival.rate=0"), "arrival.rate: must be above 0, got 0"),
    ((*SIM, "arrival.rate=-3"), "arrival.rate: must be above 0, got -3"),
    ((*SIM, "arrival.rate=fast"), "arrival.rate: found 'fast', must be a number or null"),
    ((*SIM, "arrival.rate=3", "arrival.load=0.5"), "arrival: rate, time_scale and load exclude one another"),
    ((*SIM, "workload.unit=sec"), "workload.unit: found 'sec', must be one of ms, s"),
    ((*SIM, "workload.token_scale=0.3"), "workload.token_scale: must be one over a whole number"),
    ((*SIM, "policy=static"), "policy.length_threshold: required, but not set; must be a whole number"),
    ((*SIM, "policy=homo"), "policy homo needs all workers at one degree"),
    (
        (*SIM, "cache=paper", "cache.manager.theta_reclaim=12"),
        "cache.manager.theta_reclaim: must be below theta_intra (12.0), got 12.0",
    ),
    ((*SIM, "cache.decay=1"), "cache.decay: must be in (0, 1), got 1.0"),
    ((*SIM, "cache.decay=0"), "cache.decay: must be in (0, 1), got 0.0"),
    (
        (*SIM, "cache.manager.replication_bytes_per_s=-1"),
        "cache.manager.replication_bytes_per_s: must be at least 0, or null, got -1.0",
    ),
    ((*SIM, "cache.report_delay_s=-1"), "cache.report_delay_s: must be in [0, 1000000], got -1.0"),
    ((*SIM, "profile=none"), "profile: found null, backend sim needs one"),
    ((*SIM, "model=tiny"), "model: found tiny, backend sim computes none; use model=none"),
    ((*SIM, "policy=papr"), "policy=papr: no such policy; did you mean paper? (allowed: cache_first,"),
    ((*SIM, "profile=null"), "profile=null: no such profile (allowed: deepseek_v4_flash-h20,"),
    ((*SIM, "profile=mine"), "vertumnus profile model=MODEL measures one here"),
    (("+experiment=tool_agnt",), "experiment=tool_agnt: no such experiment; did you mean tool_agent?"),
    (("+experiment=conversation",), "workload.path: required, but not set"),
    (
        (*SIM, "backend.kind=live"),
        "backend.kind: names which backend the other keys belong to; choose a backend by",
    ),
    ((*SIM, "policy.beta=1,2"), "policy.beta=1,2: several values; add -m to sweep over them, or write [a,b]"),
    (
        (*SIM, "workload.path=a=b"),
        "workload.path=a=b: the value contains '='; quote it twice: \"workload.path='a=b'\"",
    ),
    ((*SIM, "workload.path=${nope}"), "workload.path: Interpolation key 'nope' not found"),
    (
        (*SIM, "hydra.run.dir=x"),
        "hydra.run.dir: has no effect, Hydra only composes here; allowed: hydra.searchpath",
    ),
    ((*SIM, "policy@other=paper"), "Could not override 'policy@other'"),
    ((*SIM, "=3"), "=3: names no key; write key=value"),
    (
        (*SIM, "seed=99999999999999999"),
        "seed: found 99999999999999999, must be within +-9,007,199,254,740,992",
    ),
    (
        (*SIM, "cluster.gpus=100000000"),
        "cluster.gpus: found 100000000, must be at least 1 and at most 65,536",
    ),
    ((*SIM, "again"), "again: not an override; write key=value, or see vertumnus --help"),
    (("--dryrun", *SIM), "--dryrun: no such flag; did you mean --dry-run?"),
    (("--cfg", "all", *SIM), "--cfg: found all, must be one of job"),
    (("--resolve", *SIM), "--resolve: has no effect without --cfg job"),
    (("--jobs", "2", *SIM), "--jobs: has no effect without -m"),
    (("--again", *SIM), "--again: has no effect without -m"),
    (("--jobs", "0", "-m", *SIM), "--jobs: found 0, must be a whole number of at least 1"),
    (("--resume", "gone"), "--resume gone: no such sweep in runs; the newest are: none"),
    (("reprt",), "reprt: neither a verb nor an override (key=value); did you mean report?"),
    (("tool_agent",), "tool_agent: not a verb; an experiment is run with +experiment=tool_agent"),
    (("ls", "polici"), "ls polici: no such group; did you mean policy?"),
    (("report", "summry"), "report summry: no such report; did you mean summary?"),
    (("report", "latest", "trie"), "the report comes first: vertumnus report trie latest"),
    (("report", "apple"), "report apple: neither a report (aiperf, cache_ops, "),
    (("report", "--jsn"), "--jsn: no such flag; did you mean --json?"),
    (("sql",), "a statement or --schema is required; see vertumnus sql --help"),
    (
        ("-m", *SIM, "policy.beta=interval(1,2)"),
        "policy.beta=interval(1,2): an interval has no list of values",
    ),
]


@pytest.mark.parametrize(("words", "said"), BAD, ids=[" ".join(words[-2:]) for words, _ in BAD])
def test_bad_input_is_one_clear_message_and_exit_2(
    words: tuple[str, ...],
    said: str,
    elsewhere: Path,
    ran: list[RunConfig],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Key, found value, allowed values or nearest name; nothing runs, nothing is written, no traceback."""
    assert main(words) == BAD_INPUT
    out, err = capsys.readouterr()
    assert said in err
    assert "Traceback" not in err and "error: " in err
    assert (out, ran, list(elsewhere.iterdir())) == ("", [], [])


def test_every_problem_is_said_at_once(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt key, a wrong type, a wrong range and a broken sum in one message."""
    assert main([*SIM, "policy.betta=2", "seed=x", "workload.requests=0", "cluster.gpus=41"]) == BAD_INPUT
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "error: 4 problems"
    assert sorted(line.split(":")[0] for line in lines[1:]) == [
        "  - cluster.composition",
        "  - policy.betta",
        "  - seed",
        "  - workload.requests",
    ]


def test_a_missing_trace_is_bad_input(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Found before anything starts, named as typed; no run folder is left behind."""
    assert main(["+experiment=conversation", "backend=sim", "workload.path=gone.jsonl"]) == BAD_INPUT
    assert "gone.jsonl" in capsys.readouterr().err
    assert list(elsewhere.iterdir()) == []


def test_a_broken_file_of_the_users_is_named(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A YAML error says file and line; a reference to a config that is not there names the file."""
    (elsewhere / "conf" / "experiment").mkdir(parents=True)
    (elsewhere / "conf" / "experiment" / "cut.yaml").write_text("# @package _global_\nname: [\n")
    lost = "# @package _global_\ndefaults:\n  - override /policy: papr\n"
    (elsewhere / "conf" / "experiment" / "lost.yaml").write_text(lost)
    assert main(["+experiment=cut"]) == BAD_INPUT
    err = capsys.readouterr().err
    assert "cut.yaml" in err and "line 3" in err
    assert main(["+experiment=lost"]) == BAD_INPUT
    assert "no config policy/papr; did you mean paper? (allowed: " in capsys.readouterr().err
