"""The time that the figures' runs still take: measured times first, then the pace of what has ended."""

import pytest

from vertumnus.commandline import figure_times
from vertumnus.commandline.exit_codes import FAILED, INTERRUPTED, INVALID, OK, worst
from vertumnus.commandline.figure_times import TimeLeft, time_text


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of a takes 10 s, one of b 40 s."""
    monkeypatch.setattr(figure_times, "JOB_S", {"a": 10.0, "b": 40.0})


def test_measured_times_until_a_sweep_has_ended_then_its_pace() -> None:
    """6 runs at a time 2, and 3 one by one: 30 + 120 s; with the first in 60 s the second takes 240 s."""
    now = 100.0
    left = TimeLeft({"a": (6, 2), "b": (3, 1)}, is_whole=True, clock=lambda: now)
    assert left.seconds() == 150.0
    now = 160.0
    left.ended("a")
    assert left.seconds() == 240.0


def test_what_is_executed_takes_its_time_whatever_the_pace() -> None:
    """A simulated sweep at half the speed doubles the next one; an executed one neither tells nor changes."""
    now = 0.0
    runs = {"x": (1, 1), "a": (1, 1), "b": (1, 1), "y": (1, 1)}
    left = TimeLeft(runs, executed=("x", "y"), is_whole=True, clock=lambda: now)
    now = 100.0
    left.ended("x")
    assert left.seconds() == 10.0 + 40.0 + figure_times.OTHERS_S
    now = 120.0
    left.ended("a")
    assert left.seconds() == 80.0 + figure_times.OTHERS_S


def test_a_slice_has_no_measured_time() -> None:
    """Its runs are shorter by a factor that only the first sweep tells."""
    now = 0.0
    left = TimeLeft({"a": (6, 2), "b": (3, 1)}, is_whole=False, clock=lambda: now)
    assert left.seconds() is None and time_text(None) == ""
    now = 3.0
    left.ended("a")
    assert left.seconds() == 12.0


def test_the_time_is_told_in_words() -> None:
    """In minutes, and the last of them in seconds."""
    assert time_text(150.0) == "; about 2 min left in all"
    assert time_text(12.0) == "; about 12 s left in all"


def test_the_worst_of_exit_codes() -> None:
    """Interrupted before failed before INVALID."""
    assert worst([OK, INVALID, FAILED]) == FAILED
    assert worst([FAILED, INTERRUPTED]) == INTERRUPTED
    assert worst([]) == OK
