"""What a job's process tells of its run, whatever becomes of it."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vertumnus.domain.errors import ConfigError
from vertumnus.records.provenance import code_hash
from vertumnus.sweep import child
from vertumnus.sweep.child import SaidLines, run_assigned
from vertumnus.sweep.job import Ending
from vertumnus.sweep.messages import Assignment, Ended, Message, Progressed, Said, read_message, to_line


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    """A job whose config cannot be read: what serves it is put in its place by each test."""
    return Assignment(
        config={"polcy": 1},
        runs_dir=str(tmp_path),
        words=("seed=3",),
        sweep="trial-1",
        code_hash=code_hash(is_live=False),
    )


def serving(monkeypatch: pytest.MonkeyPatch, serve: Callable[..., Any]) -> None:
    """Let *serve* run whatever is assigned."""
    monkeypatch.setattr(child, "to_run_config", lambda tree: SimpleNamespace(backend=None, **tree))
    monkeypatch.setattr(child, "serve", serve)


def test_lines_are_said_as_they_are_completed() -> None:
    """Half a line waits for its other half."""
    said: list[Message] = []
    lines = SaidLines(said.append)
    print("one\ntw", end="", file=lines)
    print("o", file=lines)
    assert said == [Said("one"), Said("two")]


def test_a_config_that_this_code_does_not_know_is_bad_input(assignment: Assignment) -> None:
    """Its problems are told as for a run by itself."""
    ending = run_assigned(assignment, lambda message: None)
    assert ending.status == "bad input" and ending.run_id is None
    assert any("polcy: unknown key" in problem for problem in ending.problems)


def test_what_is_found_only_at_the_start_is_bad_input_too(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that is not there, for example."""

    def refuse(*given: Any) -> None:
        raise ConfigError("backend.device: no such device")

    serving(monkeypatch, refuse)
    assert run_assigned(assignment, lambda message: None) == Ending(
        "bad input", problems=("backend.device: no such device",)
    )


def test_an_error_is_a_failed_job_with_its_traceback(
    assignment: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's words and sweep reach its run; what breaks there ends the job, not the process."""

    def break_down(config: Any, asked: Any, console: Any) -> None:
        assert (config.runs_dir, asked.words, asked.sweep) == (assignment.runs_dir, ("seed=3",), "trial-1")
        raise RuntimeError("a rank went away")

    serving(monkeypatch, break_down)
    ending = run_assigned(assignment, lambda message: None)
    assert (ending.status, ending.problems[-1]) == ("failed", "RuntimeError: a rank went away")


@pytest.mark.parametrize(
    "message", [Progressed(3, 10), Said("a line: {}"), Ended(Ending("failed", "RUN", "INVALID", ("why",)))]
)
def test_messages_come_through_as_one_line(message: Message) -> None:
    """And what a library prints among them is none."""
    line = to_line(message)
    assert line.count(b"\n") == 1 and read_message(line) == message
    assert read_message(b"Warning: something\n") is None
