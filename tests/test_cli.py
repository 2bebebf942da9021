"""The command itself: verbs, help, exit codes, processes."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.commands import SIM, vertumnus
from vertumnus import __version__, cli
from vertumnus.cli import main
from vertumnus.commandline import jobs
from vertumnus.commandline.exit_codes import BAD_INPUT, FAILED, INTERRUPTED, INVALID, OK
from vertumnus.commandline.listing import entries
from vertumnus.config import RunConfig
from vertumnus.domain.errors import VertumnusError


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


def test_result_verbs_work_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No runs is an empty answer, a report of none is bad input; stdout carries data only."""
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == OK
    assert main(["sql", "SELECT 1 AS one", "--csv"]) == OK
    assert capsys.readouterr().out == "one\n1\n"
    assert main(["report", "latest"]) == BAD_INPUT


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
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300
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
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300
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
