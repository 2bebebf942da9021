"""What the user types and reads: verbs, flags, messages, exit codes."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from vertumnus import __version__, cli, sweep
from vertumnus.cli import main
from vertumnus.commandline import jobs
from vertumnus.commandline.exit_codes import BAD_INPUT, FAILED, INTERRUPTED, INVALID, OK
from vertumnus.commandline.listing import entries
from vertumnus.config import RunConfig
from vertumnus.domain.errors import VertumnusError
from vertumnus.sweep import Ending, Job, Sweep

SIM = ("+experiment=tool_agent", "backend=sim")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[RunConfig]:
    """Put a run that only notes its config in the place of the real one."""
    configs: list[RunConfig] = []

    def note(config: RunConfig, words: Sequence[str]) -> int:
        configs.append(config)
        return OK

    def note_all(jobs: Sequence[Job], words: Sequence[str], **flags: object) -> Sweep:
        configs.extend(job.config for job in jobs)
        return Sweep(
            "trial-0", {n: Ending("finished", None, "VALID") for n in range(1, len(jobs) + 1)}, False
        )

    monkeypatch.setattr(jobs, "execute", note)
    monkeypatch.setattr(sweep, "run_sweep", note_all)
    return configs


def vertumnus(*words: str, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own, in the folder *cwd*."""
    command = [sys.executable, "-m", "vertumnus", *words]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
    )


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


@pytest.mark.parametrize("words", [("policy.gpu_time_weight=0.3",), ("+policy.gpu_time_weight=0.3",)])
def test_a_key_is_set_with_or_without_a_plus(words: tuple[str, ...], ran: list[RunConfig]) -> None:
    """Hydra's difference between changing and adding is not the user's concern."""
    assert main([*SIM, *words]) == OK
    assert ran[0].policy.gpu_time_weight == 0.3  # type: ignore[union-attr]


def test_experiment_without_a_plus_is_the_same(ran: list[RunConfig]) -> None:
    """``experiment=x`` is rewritten to ``+experiment=x``."""
    assert main(["experiment=tool_agent", "backend=sim"]) == OK
    assert main(SIM) == OK
    assert ran[0] == ran[1]


def test_one_way_to_tell_the_rate_takes_the_place_of_another(ran: list[RunConfig]) -> None:
    """The stored config shows the arrivals really used: a load clears the rate of the file."""
    assert main([*SIM, "arrival.load=0.7"]) == OK
    assert main([*SIM, "arrival.load=null"]) == OK
    assert (ran[0].arrival.load, ran[0].arrival.rate) == (0.7, None)
    assert (ran[1].arrival.load, ran[1].arrival.rate) == (None, 45.0)


def test_a_run_keeps_its_overrides_as_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run stores can be typed again, whatever Hydra was given."""
    kept: list[Sequence[str]] = []

    def keep(config: RunConfig, words: Sequence[str]) -> int:
        kept.append(words)
        return OK

    monkeypatch.setattr(jobs, "execute", keep)
    assert main(["experiment=tool_agent", "backend=sim", "arrival.load=0.7"]) == OK
    assert kept == [("experiment=tool_agent", "backend=sim", "arrival.load=0.7")]


def test_a_further_search_path_works(tmp_path: Path, ran: list[RunConfig]) -> None:
    """An option on hydra.searchpath is found though no packaged file has its name."""
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "heavy.yaml").write_text("# Heavier.\nname: paper\nbeta: 3.0\n")
    assert main([*SIM, f"hydra.searchpath=['{tmp_path.as_uri()}']", "policy=heavy"]) == OK
    assert ran[0].policy.beta == 3.0  # type: ignore[union-attr]


def test_a_mapping_replaces_the_files_mapping(ran: list[RunConfig]) -> None:
    """``cluster.composition={2: 20}`` is the whole composition; one entry alone can be changed too."""
    assert main([*SIM, "cluster.composition={2: 20}"]) == OK
    assert main([*SIM, "cluster.composition.4=7", "cluster.composition.2=6"]) == OK
    assert ran[0].cluster.composition == {2: 20}
    assert ran[1].cluster.composition == {4: 7, 2: 6}


def test_a_value_with_an_equals_sign_works_when_quoted(ran: list[RunConfig]) -> None:
    """What the hint says is true."""
    assert main([*SIM, "workload.path='a=b.jsonl'"]) == OK
    assert ran[0].workload.path == "a=b.jsonl"


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
        ["job 1 (policy.beta=0.5 seed=0) and 1 more jobs: policy.beta: must be at least 1, got 0.5",
         "job 5 (policy.beta=0.6 seed=0) and 1 more jobs: policy.beta: must be at least 1, got 0.6"],
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
         "job 2 (cluster.blocks_per_rank=8 workload.path=gone.jsonl) and 1 more jobs: workload.path: "],
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


@pytest.mark.parametrize(
    ("status", "verdict", "code"),
    [("finished", "VALID", OK), ("finished", "INVALID", INVALID), ("failed", "INVALID", FAILED),
     ("interrupted", "INVALID", INTERRUPTED)],
)  # fmt: skip
def test_the_exit_code_says_how_a_run_ended(
    status: str, verdict: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 ok, 1 failed, 3 finished but INVALID, 130 interrupted."""
    import vertumnus.run

    outcome = vertumnus.run.Outcome("R", status, verdict)
    monkeypatch.setattr(vertumnus.run, "execute", lambda config, asked, console: outcome)
    assert main(SIM) == code


def test_ctrl_c_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a run had not begun."""

    def interrupted(config: RunConfig, words: Sequence[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "execute", interrupted)
    assert main(SIM) == INTERRUPTED


def test_dry_run_shows_the_plan_and_runs_nothing(
    elsewhere: Path, ran: list[RunConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    """Requests, span and offered load against capacity; exit 0."""
    assert main([*SIM, "--dry-run"]) == OK
    out = capsys.readouterr().out
    assert "23,608" in out and "45.00 req/s" in out
    assert (ran, list(elsewhere.iterdir())) == ([], [])


def test_a_missing_trace_is_bad_input(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Found before anything starts, named as typed; no run folder is left behind."""
    assert main(["+experiment=conversation", "backend=sim", "workload.path=gone.jsonl"]) == BAD_INPUT
    assert "gone.jsonl" in capsys.readouterr().err
    assert list(elsewhere.iterdir()) == []


def test_cfg_job_prints_the_composed_config(ran: list[RunConfig], capsys: pytest.CaptureFixture[str]) -> None:
    """As YAML on stdout, one document for each job of a sweep; nothing runs."""
    assert main([*SIM, "--cfg", "job", "-m", "seed=4,5"]) == OK
    first, second = capsys.readouterr().out.split("---\n")
    assert "seed: 4\n" in first and "seed: 5\n" in second
    assert ran == []


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for, help is data and exit 0; with nothing typed it is a message and exit 2."""
    for word in ("help", "--help", "-h"):
        assert main([word]) == OK
    assert main(["--version"]) == OK
    out, err = capsys.readouterr()
    assert out.count("usage:") == 3 and out.endswith(f"vertumnus {__version__}\n") and err == ""
    assert main([]) == BAD_INPUT
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("verb", sorted({*cli.VERBS} - {"profile", "tune", "size"}))  # these become others
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``VERB --help`` says how it is called, on stdout, with exit code 0."""
    try:
        code = main([verb, "--help"])
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    assert (code, err) == (OK, "") and out.startswith(f"usage: vertumnus {verb}")


def test_ls_shows_every_option_with_its_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each, group and name first."""
    assert main(["ls"]) == OK
    lines = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert ["policy", "round_robin", "Each eligible worker in turn."] in lines
    assert main(["ls", "policy"]) == OK
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(entries("policy"))


def test_result_verbs_work_before_the_first_run(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No runs is an empty answer, a report of none is bad input; stdout carries data only."""
    assert main(["runs"]) == OK
    assert main(["sql", "SELECT 1 AS one", "--csv"]) == OK
    assert capsys.readouterr().out == "one\n1\n"
    assert main(["report", "latest"]) == BAD_INPUT


def test_a_file_of_the_users_joins_and_wins(
    elsewhere: Path, ran: list[RunConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    """./conf adds an experiment and replaces a packaged file, and says that it does."""
    (elsewhere / "conf" / "experiment").mkdir(parents=True)
    (elsewhere / "conf" / "policy").mkdir()
    mine = "# @package _global_\n# Mine.\nname: mine\npurpose: to try\nseed: 9\n"
    (elsewhere / "conf" / "experiment" / "mine.yaml").write_text(mine)
    (elsewhere / "conf" / "policy" / "paper.yaml").write_text("# Heavier.\nname: paper\nbeta: 3.0\n")
    assert main(["+experiment=mine", "backend=sim", "policy=paper"]) == OK
    assert (ran[0].name, ran[0].seed, ran[0].policy.beta) == ("mine", 9, 3.0)  # type: ignore[union-attr]
    assert "./conf replaces the packaged policy/paper.yaml" in capsys.readouterr().err
    assert main(["ls", "experiment"]) == OK
    assert ["experiment", "mine", "Mine."] in [line.split() for line in capsys.readouterr().out.splitlines()]


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


def test_the_command_works_from_another_folder(tmp_path: Path) -> None:
    """As its own process: exit code, message on stderr only, no traceback, nothing written."""
    done = vertumnus("+experiment=tool_agent", "policy.betta=2", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (BAD_INPUT, "")
    assert done.stderr == "error: policy.betta: unknown key for policy vertumnus; did you mean policy.beta?\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", ["vertumnus.commandline", "argparse", "msgspec", "hydra"])
def test_ctrl_c_during_an_import_is_one_line(module: str, tmp_path: Path) -> None:
    """Before the first import of the command as after it: 130, and no traceback."""
    script = (
        "import sys\n"
        "class CtrlC:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, CtrlC())\n"
        "from vertumnus.cli import main\n"
        "sys.exit(main(['+experiment=tool_agent', 'backend=sim']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=90
    )
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "interrupted\n")


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    """VERTUMNUS_DEBUG=1 is for those who want it."""
    done = vertumnus("+experiment=tool_agent", "seed=-1", cwd=tmp_path, VERTUMNUS_DEBUG="1")
    assert done.returncode == BAD_INPUT
    assert "Traceback" in done.stderr and "seed: found -1, must be at least 0" in done.stderr


def test_a_simulated_run_imports_no_torch(tmp_path: Path) -> None:
    """Planning and running on the simulator load neither torch nor sockets for ranks."""
    script = (
        "import sys; from vertumnus.cli import main; "
        "code = main(['+experiment=tool_agent', 'backend=sim', 'workload.requests=50']); "
        "sys.exit(code or sorted({'torch', 'zmq'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=90
    )
    assert done.returncode == OK, done.stderr[-2000:]
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_ranks_that_do_not_come_up_are_a_message(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """What is nobody's mistake in the words ends with the message alone and exit code 1."""

    def fail(words: object) -> int:
        raise VertumnusError("rank 0 ended during the start")

    monkeypatch.setattr(cli, "VERBS", {"ls": fail})
    assert main(["ls"]) == FAILED
    assert capsys.readouterr().err == "error: rank 0 ended during the start\n"
