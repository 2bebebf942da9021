"""Two runs side by side: one instant, both in numbers, a live run that leads."""

from pathlib import Path
from shutil import copytree

import pytest
from textual.pilot import Pilot

from tests.support.consoles import GrowingRun, drive, settled, text_of, until
from vertumnus.domain.units import SECOND
from vertumnus.records.run_dir import RunDir
from vertumnus_console.__main__ import comparison, main
from vertumnus_console.app import ConsoleApp
from vertumnus_console.pair import Both
from vertumnus_console.panes.differences import rows
from vertumnus_console.player import Player


def of(*runs: RunDir) -> ConsoleApp:
    """The two runs side by side."""
    return comparison(runs[0].path.parent, [run.run_id for run in runs], speed=0.25)


def instants(app: ConsoleApp) -> list[int]:
    """The instants that the two are drawn at."""
    both: Both | None = app.screen.drawn
    return [] if both is None else [each.view.now_ns for each in both]


def are_settled(app: ConsoleApp) -> bool:
    """Whether both are where they were sent."""
    return app.screen.is_settled


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
def test_two_replays_go_in_step(recorded_run: RunDir, other_run: RunDir, size: tuple[int, int]) -> None:
    """At the end both are whole; seeking, playing and pausing take both to the same instant."""
    app = of(recorded_run, other_run)

    async def script(pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "at the end" in text_of(app, "#top") and are_settled(app), "both ends")
        assert "vertumnus  manual" in text_of(app, "#head-A") and "paper  manual" in text_of(app, "#head-B")
        assert text_of(app, "#table").splitlines()[-1].split() == ["finished", "200", "200", "+0"]
        await pilot.press("home", "right", "right")
        await until(pilot, lambda: "paused  0:02.6 of" in text_of(app, "#top"), "two steps of 1.3 s")
        await until(pilot, lambda: len(set(instants(app))) == 1, "both")
        first = instants(app)[0]
        await pilot.press("plus", "space")
        assert "play at 0.5x" in text_of(app, "#message")
        await until(pilot, lambda: "playing at 0.5x" in text_of(app, "#top"), "it plays")
        await until(pilot, lambda: min(instants(app)) > first, "both go on")
        await pilot.press("space")
        await until(pilot, lambda: "paused" in text_of(app, "#top"), "paused")
        await until(pilot, lambda: len(set(instants(app))) == 1, "both")
        await pilot.press("end", "question_mark")
        await until(pilot, lambda: text_of(app, "#text").startswith("compare"), "the help")
        assert "merge" not in text_of(app, "#text")

    drive(app, script, size=size)


def test_a_live_run_leads(recorded_run: RunDir, other_run: RunDir, tmp_path: Path) -> None:
    """A finished run is shown where the live one is, as it grows; after its end both go to their ends."""
    growing = GrowingRun(tmp_path, recorded_run)
    growing.grow(0.3)
    app = of(growing.run, RunDir(Path(copytree(other_run.path, tmp_path / other_run.run_id))))

    async def script(pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "following the live run" in text_of(app, "#top"), "live")
        await until(pilot, lambda: is_beside(app), "the other beside it")
        before = instants(app)[0]
        growing.grow(0.5)
        await until(pilot, lambda: instants(app)[0] > before and is_beside(app), "both went on")
        growing.end()
        await until(pilot, lambda: "at the end" in text_of(app, "#top"), "the end")

    drive(app, script)


def is_beside(app: ConsoleApp) -> bool:
    """Whether the second run stands where the first does, but for the last nanosecond."""
    first, second = instants(app) or (0, SECOND)
    return first > 0 and abs(first - second) <= 1


def test_differences_are_those_of_the_views(recorded_run: RunDir, other_run: RunDir) -> None:
    """Times as a ratio, shares in points, counts as counts, B against A."""
    views = []
    for run in (recorded_run, other_run):
        player = settled(Player(run, speed=1.0))
        views.append(player.snapshot().view)
        player.close()
    first, second = views
    told = {row.name: row for row in rows(first, second)}
    ratio = second.whole.ttft_mean_s / first.whole.ttft_mean_s - 1.0
    assert told["TTFT mean, run"].change == f"{ratio:+.1%}" and ratio != 0.0
    points = 100.0 * (second.whole.attainment - first.whole.attainment)
    assert told["attainment, run"].change == f"{points:+.1f} points"
    assert told["finished"] == ("finished", "200", "200", "+0")
    player = Player(recorded_run, speed=1.0)
    player.go_to_start()
    nothing = settled(player).snapshot().view
    player.close()
    assert {row.change for row in rows(nothing, first)[:5]} == {"–"}


def test_three_runs_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Two stand side by side; more are a mistake that is told."""
    assert main(["a", "b", "c"]) == 2
    assert "RUN: found 3 runs (a, b, c), at most 2 stand side by side" in capsys.readouterr().err
