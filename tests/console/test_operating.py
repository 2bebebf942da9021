"""Operators at their consoles, on a paced run that is held: every action, its refusal, read-only."""

from pathlib import Path
from typing import get_args

import pytest
from textual.pilot import Pilot

from tests.support.consoles import GrowingRun, drive, text_of, until
from tests.support.operating import acted, attached, point, says, tune
from tests.support.paced_runs import paced_run
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Action
from vertumnus.domain.orders import CloseTransition
from vertumnus.records.log import read_log
from vertumnus.records.run_dir import RunDir
from vertumnus.run.audit import audit_run
from vertumnus_console.__main__ import console
from vertumnus_console.keys import of_kind

THRESHOLDS = ("controller=thresholds",)
HELD = 1e-6


def test_every_action_and_its_refusal(tmp_path: Path) -> None:
    """Each key asks, what the run answers is said, and what it did is on the screen and in the log."""
    with paced_run(tmp_path, *THRESHOLDS) as going:
        app = console(tmp_path, "latest", speed=1.0, who="ann")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            await pilot.press("m")
            assert "select a worker first" in text_of(app, "#message")
            await point(pilot, app, CpGroup(0, 4))
            await pilot.press("d")
            await says(pilot, app, "ann: drain 0x4 accepted")
            assert "d Reopen" in text_of(app, "#keys")
            await pilot.press("s")
            await until(pilot, lambda: "is drained; reopen it first" in text_of(app, "#preview"), "why not")
            await pilot.press("y", "d")
            await says(pilot, app, "ann: reopen 0x4 accepted")
            await point(pilot, app, CpGroup(32, 2))
            await pilot.press("s")
            await until(pilot, lambda: "degree 1 is not supported" in text_of(app, "#preview"), "why not")
            assert "a split is possible now for 0x4, 4x4" in text_of(app, "#preview")
            await pilot.press("escape", "m")
            await until(
                pilot,
                lambda: (
                    "3 x CP2" not in text_of(app, "#preview") and "composition" in text_of(app, "#preview")
                ),
                "preview",
            )
            assert "4 x CP2 + 8 x CP4  ->  2 x CP2 + 9 x CP4" in text_of(app, "#preview")
            await until(pilot, lambda: "stay" in text_of(app, "#forecast"), "the forecast")
            assert "merge" in text_of(app, "#forecast") and "attainment" in text_of(app, "#forecast")
            await pilot.press("n")
            assert acted(going.run)[-1].action == "reopen"
            await pilot.press("m")
            await until(pilot, lambda: "y or enter" in text_of(app, "#choice"), "the question")
            await pilot.press("y")
            await says(pilot, app, "ann: merge 32x2 + 34x2 accepted")
            await until(pilot, lambda: "HOLD" in text_of(app, "#top"), "on hold")
            await pilot.press("a")
            await says(pilot, app, "ann: auto accepted")
            await until(pilot, lambda: "a Manual" in text_of(app, "#keys"), "auto")
            await pilot.press("a")
            await says(pilot, app, "ann: manual accepted")
            await pilot.press("f")
            await says(pilot, app, "ann: off accepted")
            await until(pilot, lambda: "OFF" in text_of(app, "#top"), "frozen")
            await point(pilot, app, CpGroup(36, 2))
            await pilot.press("m")
            await until(pilot, lambda: "y or enter" in text_of(app, "#choice"), "the question")
            await pilot.press("y")
            await says(pilot, app, "merge 36x2 + 38x2 refused, moves were turned off")
            assert "f Unfreeze" in text_of(app, "#keys")
            await pilot.press("f")
            await says(pilot, app, "ann: manual accepted")
            await pilot.press("z")
            await says(pilot, app, "ann: undo refused, undo: no parameter was changed")
            await tune(pilot, app, "0.5")
            await says(pilot, app, "refused, tune policy.beta: beta must be at least 1, got 0.5")
            await tune(pilot, app, "1.5")
            await says(pilot, app, "policy.beta 1 -> 1.5")
            await pilot.press("z")
            await says(pilot, app, "policy.beta 1.5 -> 1")
            await pilot.press("plus")
            await says(pilot, app, "ann: speed 2e-06 accepted")
            await pilot.press("h")
            await until(pilot, lambda: "HELD" in text_of(app, "#top"), "held")
            assert "h Go on" in text_of(app, "#keys")
            await pilot.press("h")
            await until(pilot, lambda: "LIVE 2e-06x" in text_of(app, "#top"), "going on")

        drive(app, script)
        outcome = going.finish()
    assert outcome.verdict == "VALID"
    mine = [fact.action for fact in acted(going.run) if fact.who == "ann"]
    assert mine == [
        "drain",
        "reopen",
        "merge",
        "auto",
        "manual",
        "off",
        "merge",
        "manual",
        "undo",
        "tune",
        "tune",
        "undo",
        "speed",
        "speed",
        "speed",
    ]
    closed = [r.body for r in read_log(going.run.log).records if isinstance(r.body, CloseTransition)]
    assert [order.outcome for order in closed] == ["committed"]
    assert audit_run(going.run).is_clean


def test_a_controller_that_is_none_cannot_be_turned_on(tmp_path: Path) -> None:
    """Where workers are moved by hand alone, auto is refused with the reason."""
    with paced_run(tmp_path):
        app = console(tmp_path, "latest", speed=1.0, who="ann")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            await pilot.press("a")
            await says(pilot, app, "ann: auto refused, auto: controller=manual has no controller")

        drive(app, script)


def test_read_only_has_no_action_anywhere(tmp_path: Path) -> None:
    """Not in the key line, not in the palette, not behind a key, not through the socket (case 25)."""
    with paced_run(tmp_path) as going:
        app = console(tmp_path, "latest", speed=1.0, who="eve", reads_only=True)

        async def script(pilot: "Pilot[None]") -> None:
            await until(pilot, lambda: "READ-ONLY" in text_of(app, "#top"), "read-only")
            await pilot.press("b")
            await pilot.press("s", "m", "d", "a", "f", "p", "z", "plus", "minus", "h", "t", "y", "x", "o")
            assert app.screen.query("#overview")  # no dialog came up
            await pilot.press("m")
            assert "merge changes the run; this console was started with --read-only" in text_of(
                app, "#message"
            )
            names = {key.name for key in of_kind("act")}
            offered = {command.title for command in app.get_system_commands(app.screen)}
            assert not names & offered and "workers" in offered
            assert not names & {key.name for key in app.screen.offered()}

        drive(app, script)
        client = going.client("eve", reads_only=True)
        for action in get_args(Action):
            assert client.wait(client.act(action), 30).reason == "this console is read-only"
        assert acted(going.run) == []


def test_two_operators_see_each_other(tmp_path: Path) -> None:
    """What one does is said on the other's screen, by name; the second wish for the same thing is refused."""
    with paced_run(tmp_path) as going:
        app = console(tmp_path, "latest", speed=1.0, who="ann")
        bob = going.client("bob")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            assert bob.wait(bob.act("drain", (CpGroup(4, 4),)), 30).accepted
            await says(pilot, app, "bob: drain 4x4 accepted")
            await pilot.press("e")
            await until(pilot, lambda: "bob: drain 4x4 accepted" in text_of(app, "#events-text"), "the event")
            assert not bob.wait(bob.act("drain", (CpGroup(4, 4),)), 30).accepted
            await says(pilot, app, "bob: drain 4x4 refused, drain 4x4: bob drained it already")

        drive(app, script)


def test_a_run_that_ends_is_told_and_can_still_be_looked_at(tmp_path: Path) -> None:
    """The console says that the run ended, goes on as a replay, and explains why it cannot act any more."""
    with paced_run(tmp_path) as going:
        app = console(tmp_path, "latest", speed=1.0, who="ann")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            going.finish()
            await says(pilot, app, "the run has ended: finished, VALID")
            assert "s Split?" in text_of(app, "#keys") and "d Drain" not in text_of(app, "#keys")
            await pilot.press("b", "d")
            assert "the run has ended, nothing can be changed" in text_of(app, "#message")
            await point(pilot, app, CpGroup(32, 2))
            await pilot.press("m")
            await until(pilot, lambda: "stay" in text_of(app, "#forecast"), "what it would have done")
            assert "nothing can be changed any more" in text_of(app, "#choice")
            await pilot.press("y", "o")
            assert [fact.action for fact in acted(going.run)] == ["speed"]
            await pilot.press("left")
            await until(pilot, lambda: "PAUSED" in text_of(app, "#top"), "an instant before")
            await pilot.press("plus")
            assert "play at 2x" in text_of(app, "#message")

        drive(app, script)


def test_a_lost_connection_is_told(recorded_run: RunDir, tmp_path: Path) -> None:
    """A run whose socket is not there is watched on; the console says so and tries again."""
    growing = GrowingRun(tmp_path, recorded_run)
    growing.grow(0.5)
    app = console(tmp_path, "latest", speed=1.0, who="ann")

    async def script(pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "lost, reconnecting" in text_of(app, "#top"), "lost")
        await pilot.press("b", "d")
        assert "not connected (actions.sock: No such file" in text_of(app, "#message")
        assert "arrived" in text_of(app, "#counts")

    drive(app, script)
    growing.end()


def test_what_is_seen_can_be_saved(
    recorded_run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture and a text of the same screen lie in the current folder; where they cannot, it is told."""
    monkeypatch.chdir(tmp_path)
    app = console(recorded_run.path.parent, recorded_run.run_id, speed=1.0)

    async def script(pilot: "Pilot[None]") -> None:
        await until(pilot, lambda: "replay, end" in text_of(app, "#top"), "the end")
        await pilot.press("v")
        assert "saved console-" in text_of(app, "#message")
        (picture,) = tmp_path.glob("console-*.svg")
        (text,) = tmp_path.glob("console-*.txt")
        assert picture.read_text().startswith("<svg")
        lines = text.read_text().splitlines()
        assert any("4 x CP2 + 8 x CP4, 40 GPUs" in line for line in lines) and len(lines) == 24
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()
        await pilot.press("v")
        assert "cannot write it here" in text_of(app, "#message")

    drive(app, script)
