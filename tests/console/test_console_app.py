"""The application driven by its keys: what is on the screen, widget by widget."""

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import ContentSwitcher, Footer, Static
from textual.widgets._footer import FooterKey

from tests.support.consoles import GrowingRun, drive, text_of, until
from vertumnus.domain.codec import INPUT, Record
from vertumnus.domain.facts import RankLost
from vertumnus.records.run_dir import RunDir
from vertumnus_console.__main__ import console, main
from vertumnus_console.app import ConsoleApp
from vertumnus_console.panes.help import HelpScreen
from vertumnus_console.panes.workers import COLUMNS, WorkersPane, row


def of(run: RunDir) -> ConsoleApp:
    """The console on *run*."""
    return console(run.path.parent, run.run_id, speed=1.0)


async def at_end(pilot: "Pilot[None]", app: ConsoleApp) -> None:
    """Wait until the whole log is shown."""
    await until(pilot, lambda: "replay, end" in text_of(app, "#top"), "the end is shown")


def test_overview_of_a_finished_run(recorded_run: RunDir) -> None:
    """The first line tells what is looked at; composition, counts and TTFT are those at the end."""
    app = of(recorded_run)

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        top = text_of(app, "#top")
        assert top.startswith("SIMULATED  replay, end  tool_agent …" + recorded_run.run_id[-6:])
        assert top.endswith("finished, VALID")
        assert text_of(app, "#composition") == "4 x CP2 + 8 x CP4, 40 GPUs"
        lines = text_of(app, "#strip").splitlines()
        assert len(lines) == 5 and [line.count("[CP4 .") for line in lines] == [2, 2, 2, 2, 0]
        assert lines[4].count("[CP2 .") == 4
        assert "200 arrived" in text_of(app, "#counts") and "200 finished" in text_of(app, "#counts")
        view = app.screen._drawn.view
        assert f"{view.whole.attainment:.1%}" in text_of(app, "#service")

    drive(app, script)


def test_seeking_by_keys(recorded_run: RunDir) -> None:
    """home shows nothing arrived, right some, left nothing again, end all; space plays from there on."""
    app = of(recorded_run)

    async def press(pilot: "Pilot[None]", key: str, shows: str) -> None:
        await pilot.press(key)
        await until(pilot, lambda: shows in text_of(app, "#top"), f"{shows} after {key}")

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        await press(pilot, "home", "paused  tool_agent")
        assert text_of(app, "#counts").startswith("requests   0 arrived")
        assert " 0:00.0 of " in text_of(app, "#top")
        await pilot.press("right", "right")
        await until(pilot, lambda: " 0 arrived" not in text_of(app, "#counts"), "some arrived")
        await pilot.press("left", "left")
        await until(pilot, lambda: " 0 arrived" in text_of(app, "#counts"), "none arrived")
        await press(pilot, "space", "replay at 1x")
        await press(pilot, "space", "replay, paused")
        await press(pilot, "end", "replay, end")
        assert "200 finished" in text_of(app, "#counts")

    drive(app, script)


def test_workers_table(recorded_run: RunDir) -> None:
    """Each worker's row is that of the view, at the end and after a seek, with the table in focus."""
    app = of(recorded_run)

    def cells() -> list[dict[str, str]]:
        table = app.screen.query_one(WorkersPane)
        rows = [[cell.plain.strip() for cell in table.get_row_at(place)] for place in range(table.row_count)]
        return [dict(zip(COLUMNS, texts, strict=True)) for texts in rows]

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        await pilot.press("w")
        assert app.screen.query_one(ContentSwitcher).current == "workers"
        before = cells()
        assert before == [row(worker) for worker in app.screen._drawn.view.workers]
        await pilot.press("left", "left", "left")
        await until(pilot, lambda: "paused" in text_of(app, "#top") and cells() != before, "another instant")
        assert cells() == [row(worker) for worker in app.screen._drawn.view.workers]

    drive(app, script)


def test_a_live_run_is_followed(recorded_run: RunDir, tmp_path: Path) -> None:
    """The screen follows a log as it grows, and says so when the run is over; a tag in a name is text."""
    growing = GrowingRun(tmp_path, recorded_run, name="[red]a[/red]")
    growing.grow(0.5)
    app = console(tmp_path, "latest", speed=1.0)

    async def script(pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "LIVE" in text_of(app, "#top"), "live")
        assert "[red]a[/red]" in text_of(app, "#top")
        assert "200 finished" not in text_of(app, "#counts")
        growing.grow()
        await until(pilot, lambda: "200 finished" in text_of(app, "#counts"), "the rest is shown")
        growing.end()
        await until(pilot, lambda: text_of(app, "#top").endswith("killed"), "the end is told")

    drive(app, script)


def test_everything_has_a_place_at_80x24(recorded_run: RunDir) -> None:
    """On the smallest screen the footer is the last line and every key in it is whole."""
    app = of(recorded_run)

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        footer = app.screen.query_one(Footer)
        await until(pilot, lambda: len(footer.query(FooterKey)) >= 8, "the keys")
        await pilot.pause()
        assert (footer.region.y, footer.region.height) == (23, 1)
        keys = list(footer.query(FooterKey))
        assert {key.key_display for key in keys} == {"o", "w", "e", "←/→", "home/end", "space", "?", "q"}
        assert max(key.region.right for key in keys) <= 80
        assert app.screen.query_one("#newest").region.bottom <= 23
        assert app.screen.query_one("#overview").max_scroll_y == 0

    drive(app, script, size=(80, 24))


def test_help_events_and_themes(recorded_run: RunDir) -> None:
    """? opens the help and escape closes it, e shows the events, d goes light and dark."""
    app = of(recorded_run)

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        await until(pilot, lambda: app.screen.query_one("#help").region.height > 0, "the help is laid out")
        assert app.screen.query_one("#help").max_scroll_y == 0
        await pilot.press("escape", "e")
        assert "nothing went wrong" in text_of(app, "#events-list")
        await pilot.press("d")
        assert app.theme == "textual-light"
        await pilot.press("d")
        assert app.theme == "textual-dark"
        await pilot.press("q")

    drive(app, script)
    assert app.return_code == 0


def test_a_replay_that_breaks_is_told(recorded_run: RunDir, tmp_path: Path) -> None:
    """A log that no pool could have written keeps the last view on the screen and says what is wrong."""
    growing = GrowingRun(tmp_path, recorded_run)
    growing.grow(0.5)
    app = of(growing.run)

    async def script(pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "LIVE" in text_of(app, "#top"), "live")
        growing.tell(Record(INPUT, RankLost(10**12, 999, 0, "there is no such rank")))
        notice = app.screen.query_one("#notice", Static)
        await until(pilot, lambda: bool(notice.display), "the notice")
        assert text_of(app, "#notice").startswith("the replay stopped here: ")
        assert "arrived" in text_of(app, "#counts")
        await pilot.press("left", "w", "o")

    drive(app, script)
    growing.end()


def test_unknown_run_is_a_message(
    recorded_run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is not there and a folder without runs exit 2 with one line, before the screen changes."""
    assert main(["nope", "--runs-dir", str(recorded_run.path.parent)]) == 2
    assert "run nope: no such" in capsys.readouterr().err
    assert main(["--runs-dir", str(tmp_path)]) == 2
    assert f"no run in {tmp_path}; start one" in capsys.readouterr().err
