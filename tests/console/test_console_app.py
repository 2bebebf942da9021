"""The application driven by its keys: what is on the screen, widget by widget."""

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import ContentSwitcher, Static

from tests.support.consoles import GrowingRun, drive, text_of, until
from vertumnus.domain.codec import INPUT, Record
from vertumnus.domain.facts import RankLost
from vertumnus.records.run_dir import RunDir
from vertumnus_console.__main__ import console, main
from vertumnus_console.app import ConsoleApp
from vertumnus_console.dialogs.confirm import ConfirmMove
from vertumnus_console.keys import KEYS
from vertumnus_console.panes.workers import WorkersPane, row
from vertumnus_console.words import clock


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
        assert top.startswith("SIMULATED  replay, end  MANUAL  tool_agent …" + recorded_run.run_id[-6:])
        assert top.endswith("finished, VALID")
        assert text_of(app, "#composition") == "4 x CP2 + 8 x CP4, 40 GPUs"
        lines = text_of(app, "#strip").splitlines()
        assert len(lines) == 5 and [line.count("[CP4 .") for line in lines] == [2, 2, 2, 2, 0]
        assert lines[4] == "node 4 " + "".join(f"[{rank}x2 . idle   ]" for rank in (32, 34, 36, 38))
        assert "200 arrived" in text_of(app, "#counts") and "200 finished" in text_of(app, "#counts")
        view = app.screen.drawn.view
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
        await press(pilot, "home", "PAUSED  MANUAL  tool_agent")
        assert text_of(app, "#counts").startswith("requests   0 arrived")
        assert " 0:00.0 of " in text_of(app, "#top")
        await pilot.press("right", "right")
        await until(pilot, lambda: " 0 arrived" not in text_of(app, "#counts"), "some arrived")
        await pilot.press("left", "left")
        await until(pilot, lambda: " 0 arrived" in text_of(app, "#counts"), "none arrived")
        await press(pilot, "space", "replay at 1x")
        await press(pilot, "space", "replay, PAUSED")
        await press(pilot, "end", "replay, end")
        assert "200 finished" in text_of(app, "#counts")

    drive(app, script)


def test_workers_table(recorded_run: RunDir) -> None:
    """Each worker's row is that of the view, at the end and after a seek, with the table in focus."""
    app = of(recorded_run)

    def cells() -> list[tuple[str, ...]]:
        return [tuple(cell.strip() for cell in row) for row in app.screen.query_one(WorkersPane).rows]

    def told() -> list[tuple[str, ...]]:
        return [tuple(text.strip() for text in row(worker)) for worker in app.screen.drawn.view.workers]

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        await pilot.press("w")
        assert app.screen.query_one(ContentSwitcher).current == "workers"
        before = cells()
        assert before == told()
        await pilot.press("left", "left", "left")
        await until(pilot, lambda: "PAUSED" in text_of(app, "#top") and cells() != before, "another instant")
        assert cells() == told()

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
    """On the smallest screen every screen's key is whole, and the overview needs no scrolling."""
    app = of(recorded_run)

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        await pilot.pause()
        tabs, keys = app.screen.query_one("#tabs"), app.screen.query_one("#keys")
        assert len(text_of(app, "#tabs")) <= 78 and tabs.region.height == 1
        lines = text_of(app, "#keys").splitlines()
        assert keys.region.bottom == 24 and keys.region.height == len(lines) <= 2
        assert all(len(line) <= 78 for line in lines)
        assert app.screen.query_one("#newest").region.bottom <= keys.region.y
        assert app.screen.query_one("#overview").max_scroll_y == 0

    drive(app, script, size=(80, 24))


@pytest.mark.parametrize("size", [(80, 24), (132, 43), (320, 80)])
def test_every_screen_shows_what_it_is_for(recorded_run: RunDir, size: tuple[int, int]) -> None:
    """Each key opens its screen with its content, ? explains it, and enter looks closer where one can."""
    app = of(recorded_run)
    content = {
        "w": ("workers", None),
        "u": ("queues", None),
        "t": ("trie", None),
        "c": ("choices", None),
        "e": ("events", "copy"),
        "r": ("model", "CP4"),
        "l": ("log", None),
        "o": ("overview", None),
    }

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        for key, (name, told) in content.items():
            await pilot.press(key)
            assert app.screen.query_one(ContentSwitcher).current == name
            if told is not None:
                await until(
                    pilot, lambda n=name, t=told: t in text_of(app, f"#{n}-text"), f"{name} shows {told}"
                )
            await pilot.press("question_mark")
            await until(pilot, lambda n=name: text_of(app, "#text").startswith(n), f"help of {name}")
            await pilot.press("escape")
        log = app.screen.query_one("#log")
        assert any("RequestEnded request_id=" in log.cells(row)[2] for row in log.rows)
        await pilot.press("c")
        await until(pilot, lambda: app.screen.query_one("#choices").rows, "placements")
        await pilot.press("enter")
        await until(pilot, lambda: " chosen" in text_of(app, "#text"), "all candidates")
        await pilot.press("escape", "t")
        await until(pilot, lambda: app.screen.query_one("#trie").rows, "prefixes")
        await pilot.press("enter")
        await until(pilot, lambda: "held along the path" in text_of(app, "#text"), "the prefix")
        await pilot.press("escape", "o", "enter")
        assert "nothing is selected" in text_of(app, "#message")
        await pilot.press("b", "enter")
        await until(pilot, lambda: "waiting, next first" in text_of(app, "#text"), "the worker")

    drive(app, script, size=size)


def test_a_key_that_is_none_says_so(recorded_run: RunDir) -> None:
    """A wrong key is answered with where the right ones are listed."""
    app = of(recorded_run)

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        await pilot.press("i")
        assert text_of(app, "#message") == "i: no such key here; ? lists them"

    drive(app, script)


def test_themes_and_leaving(recorded_run: RunDir) -> None:
    """D goes light and dark, q leaves with 0."""
    app = of(recorded_run)

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        await pilot.press("D")
        assert app.theme == "textual-light"
        await pilot.press("D")
        assert app.theme == "textual-dark"
        await pilot.press("q")

    drive(app, script)
    assert app.return_code == 0


def test_the_mouse_does_what_keys_do(recorded_run: RunDir) -> None:
    """A click on a screen's name opens it."""
    app = of(recorded_run)

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        place = text_of(app, "#tabs").index("Events")
        await pilot.click("#tabs", offset=(place + 2, 0))
        await until(pilot, lambda: app.screen.query_one(ContentSwitcher).current == "events", "events")

    drive(app, script)


def test_the_palette_has_every_key(recorded_run: RunDir) -> None:
    """Whatever a key does can be found by name, and done from there."""
    app = of(recorded_run)

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        commands = {each.title: each for each in app.get_system_commands(app.screen)}
        assert set(commands) == {key.name for key in KEYS}
        app.call_later(commands["events"].callback)
        await until(pilot, lambda: app.screen.query_one(ContentSwitcher).current == "events", "events")

    drive(app, script)


def test_a_user_s_keys(recorded_run: RunDir) -> None:
    """A key from the user's file works and is shown; the one that it replaces does nothing."""
    app = console(recorded_run.path.parent, recorded_run.run_id, speed=1.0, keymap={"events": "f"})

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        assert "f Events" in text_of(app, "#tabs")
        await pilot.press("e")
        assert app.screen.query_one(ContentSwitcher).current == "overview"
        await pilot.press("f")
        assert app.screen.query_one(ContentSwitcher).current == "events"

    drive(app, script)


def test_a_replay_that_breaks_is_told(recorded_run: RunDir, tmp_path: Path) -> None:
    """A log that no pool could have written keeps the last view on the screen and says what is wrong."""
    growing = GrowingRun(tmp_path, recorded_run)
    growing.grow(0.5)
    app = of(growing.run)

    async def script(pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "LIVE" in text_of(app, "#top"), "live")
        growing.tell(Record(INPUT, RankLost(10**12, 999, 0, "there is no such rank")))
        message = app.screen.query_one("#message", Static)
        await until(pilot, lambda: bool(message.display), "the message")
        assert text_of(app, "#message").startswith("the replay stopped here: ")
        assert "arrived" in text_of(app, "#counts")
        await pilot.press("left", "w", "o")
        assert "LIVE" in text_of(app, "#top")
        growing.end()
        await until(pilot, lambda: "killed" in text_of(app, "#top"), "how the run ended")
        assert "replay, end" in text_of(app, "#top") and "lost" not in text_of(app, "#top")
        assert text_of(app, "#message").startswith("the run has ended: killed")
        await pilot.press("b", "d")
        assert "drain: the run has ended, nothing can be changed" in text_of(app, "#message")
        await pilot.press("p")
        assert "tune: the run has ended, nothing can be changed" in text_of(app, "#message")

    drive(app, script)


def test_a_preview_is_of_the_instant_that_is_shown(recorded_run: RunDir) -> None:
    """Asked for on the way to an instant, it is of that instant, and the dialog names it."""
    app = of(recorded_run)

    async def script(pilot: "Pilot[None]") -> None:
        await at_end(pilot, app)
        await pilot.press("down", "left", "s")
        dialog = app.screen
        assert isinstance(dialog, ConfirmMove)
        await until(pilot, lambda: "composition" in text_of(app, "#preview"), "the preview")
        run = app.screen_stack[0]
        await until(
            pilot, lambda: run.is_settled and "PAUSED" in run.query_one("#top").content.plain, "there"
        )
        assert dialog.query_one(".dialog").border_title == f"split 0x4 at {clock(run.drawn.view.now_ns)}"

    drive(app, script)


def test_a_run_that_goes_before_a_newer_one(recorded_run: RunDir, tmp_path: Path) -> None:
    """Without a name the console opens the newest run that is going; where none is, the newest."""
    growing = GrowingRun(tmp_path, recorded_run, "going")
    GrowingRun(tmp_path, recorded_run, "interrupted", number=2).end()

    def opened() -> str:
        app = console(tmp_path, "latest", speed=1.0)
        app.let_go()
        return app.get_default_screen().shown.name

    assert opened() == "going"
    growing.end()
    assert opened() == "interrupted"


def test_unknown_run_is_a_message(
    recorded_run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that is not there and a folder without runs exit 2 with one line, before the screen changes."""
    assert main(["nope", "--runs-dir", str(recorded_run.path.parent)]) == 2
    assert "run nope: no such" in capsys.readouterr().err
    assert main(["--runs-dir", str(tmp_path)]) == 2
    assert f"no run in {tmp_path}; start one" in capsys.readouterr().err
