"""How far a run is, as people are told where there is no terminal."""

from io import StringIO

import pytest
from rich.console import Console

from vertumnus.domain.units import SECOND
from vertumnus.run import progress
from vertumnus.run.progress import LINE_S, Progress


def test_the_clock_is_told_while_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every 15 s of the wall, however often it is asked: years of timers do not look like a hang."""
    wall, shown = [100.0], StringIO()
    monkeypatch.setattr(progress, "monotonic", lambda: wall[0])
    with Progress(Console(file=shown, width=200), "trial", 30) as telling:
        telling.show(2)
        for _ in range(3):
            telling.quiet(7 * SECOND)
        assert shown.getvalue() == ""
        wall[0] += LINE_S
        for _ in range(3):
            telling.quiet(3_200_000 * SECOND)
    assert shown.getvalue() == "trial: 2 of 30 requests, at 3,200,000 s of the run's clock\n"
