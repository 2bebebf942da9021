"""Operators at their consoles, on a paced run that is held: every action, its refusal, read-only."""

import asyncio
import re
from pathlib import Path
from typing import get_args

import pytest
from textual.pilot import Pilot

from tests.support.consoles import GrowingRun, drive, text_of, until
from tests.support.operating import acted, attached, point, says, tune
from tests.support.paced_runs import paced_run
from tests.support.still_clock import StillClock, passing
from tests.support.trials import TRIALS, Operator, check_tried, try_all
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Action
from vertumnus.domain.orders import CloseTransition
from vertumnus.records.log import read_log
from vertumnus.records.run_dir import RunDir
from vertumnus.run.audit import audit_run
from vertumnus_console.__main__ import console
from vertumnus_console.app import ConsoleApp
from vertumnus_console.keys import of_kind


def test_every_action_has_its_trial() -> None:
    """An action that is added is tried, and so is a key that acts; the two tests below try all of them."""
    assert set(TRIALS) == set(get_args(Action))
    assert {name for trial in TRIALS.values() for name in trial.keys} == {key.name for key in of_kind("act")}


def test_every_action_and_its_refusal(tmp_path: Path) -> None:
    """Each key asks, what the run answers is said, and what it did is on the screen and in the log."""
    words = ("controller=thresholds", "policy=paper", "cache=off", "workload.requests=1500")
    clock = StillClock()
    with paced_run(tmp_path, *words, speed=0.5, clock=clock) as going:
        app = console(tmp_path, "latest", speed=1.0, who="ann")
        bob = going.client("bob")

        async def script(pilot: "Pilot[None]") -> None:
            await try_all(Operator(pilot, app, bob, CpGroup(32, 4), clock))

        drive(app, script)
        assert going.finish().verdict == "VALID"
    check_tried(going.run, set(TRIALS))
    closed = [r.body for r in read_log(going.run.log).records if isinstance(r.body, CloseTransition)]
    assert [order.outcome for order in closed][:2] == ["committed", "committed"]
    assert audit_run(going.run).is_clean


def test_a_move_is_looked_at_first(tmp_path: Path) -> None:
    """The preview says why not, and what can be done instead; or what would change, and then asks."""
    with paced_run(tmp_path, "controller=thresholds") as going:
        app = console(tmp_path, "latest", speed=1.0, who="ann")

        def preview() -> str:
            return text_of(app, "#preview")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            await pilot.press("m")
            assert "select a worker first" in text_of(app, "#message")
            await point(pilot, app, CpGroup(0, 4))
            await pilot.press("d")
            await says(pilot, app, "ann: drain 0x4 accepted")
            await pilot.press("s")
            await until(pilot, lambda: "it is drained by ann; reopen it first" in preview(), "why not")
            await pilot.press("y")
            await point(pilot, app, CpGroup(32, 2))
            await pilot.press("s")
            await until(pilot, lambda: "degree 1 is not supported" in preview(), "why not")
            assert re.search(r"a split is possible at \d+:\d\d\.\d for 4x4, 8x4", preview())
            await pilot.press("escape", "m")
            await until(pilot, lambda: "4 x CP2 + 8 x CP4  ->  2 x CP2 + 9 x CP4" in preview(), "preview")
            await until(pilot, lambda: "stay" in text_of(app, "#forecast"), "the forecast")
            assert "merge" in text_of(app, "#forecast") and "attainment" in text_of(app, "#forecast")
            await pilot.press("n")
            assert [fact.action for fact in acted(going.run)] == ["drain"]
            await pilot.press("m")
            await until(pilot, lambda: "y or enter" in text_of(app, "#choice"), "the question")
            await pilot.press("y")
            await says(pilot, app, "ann: merge 32x2 + 34x2 accepted")
            await until(pilot, lambda: "HOLD" in text_of(app, "#top"), "on hold")

        drive(app, script)


def test_a_preview_follows_what_others_do(tmp_path: Path) -> None:
    """Frozen, it says how that ends and that yes is refused; what bob does meanwhile shows without a key."""
    with paced_run(tmp_path, "controller=thresholds") as going:
        app = console(tmp_path, "latest", speed=1.0, who="ann")
        bob = going.client("bob")

        def preview() -> str:
            return text_of(app, "#preview")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            await point(pilot, app, CpGroup(4, 4))
            assert bob.wait(bob.act("off"), 30).accepted
            await until(pilot, lambda: "f Unfreeze" in text_of(app, "#keys"), "frozen")
            await pilot.press("s")
            await until(pilot, lambda: "f (Unfreeze) or a (Auto) ends that" in preview(), "how it ends")
            assert "yes is refused until then" in preview()
            assert bob.wait(bob.act("auto"), 30).accepted
            await until(pilot, lambda: "on hold for 60 s after it" in preview(), "free again")
            assert bob.wait(bob.act("drain", (CpGroup(4, 4),)), 30).accepted
            await until(pilot, lambda: "it is drained by bob; reopen it first" in preview(), "not any more")
            await pilot.press("y")
            assert not app.screen.query("#preview")

        drive(app, script)
        assert [fact.action for fact in acted(going.run)] == ["off", "auto", "drain"]


def test_a_controller_that_is_none_cannot_be_turned_on(tmp_path: Path) -> None:
    """Where workers are moved by hand alone, auto is refused with the reason."""
    with paced_run(tmp_path):
        app = console(tmp_path, "latest", speed=1.0, who="ann")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            assert "a Auto" not in text_of(app, "#keys")
            await pilot.press("a")
            await says(pilot, app, "ann: auto refused, controller=manual has no controller")
            await pilot.press("f")
            await until(pilot, lambda: "f Unfreeze" in text_of(app, "#keys"), "frozen")
            assert "a Auto" not in text_of(app, "#keys")
            await point(pilot, app, CpGroup(4, 4))
            await pilot.press("s")
            await until(pilot, lambda: ", f (Unfreeze) ends that" in text_of(app, "#preview"), "how it ends")

        drive(app, script)


def test_a_run_that_takes_no_moves_offers_no_freeze(tmp_path: Path) -> None:
    """controller=off: who may move is not the operator's to say; a preview says that yes is refused."""
    with paced_run(tmp_path, "controller=off"):
        app = console(tmp_path, "latest", speed=1.0, who="ann")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            line = text_of(app, "#keys")
            assert "s Split" in line and not {"Freeze", "Unfreeze", "Auto", "Manual"} & set(line.split())
            await point(pilot, app, CpGroup(4, 4))
            await pilot.press("s")
            await until(pilot, lambda: "takes no moves: yes is refused" in text_of(app, "#preview"), "why")
            await pilot.press("y")
            await says(pilot, app, "split 4x4 refused, controller=off takes no moves")

        drive(app, script)


def test_giving_back_what_the_controller_has_taken_by_itself(tmp_path: Path) -> None:
    """a asks for AUTO in AUTO too, as when a hold has just ended; g takes over, also from a hold."""
    with paced_run(tmp_path, "controller=thresholds") as going:
        app = console(tmp_path, "latest", speed=1.0, who="ann")
        bob = going.client("bob")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            assert "g Manual" in text_of(app, "#keys") and "a Auto" not in text_of(app, "#keys")
            await pilot.press("a")
            await says(pilot, app, "ann: auto accepted")
            assert bob.wait(bob.act("merge", (CpGroup(32, 2), CpGroup(34, 2))), 30).accepted
            await until(pilot, lambda: "HOLD" in text_of(app, "#top"), "on hold")
            assert "a Auto  g Manual" in text_of(app, "#keys")
            await pilot.press("g")
            await says(pilot, app, "ann: manual accepted")
            await until(pilot, lambda: "MANUAL" in text_of(app, "#top"), "by hand")
            assert "a Auto" in text_of(app, "#keys") and "g Manual" not in text_of(app, "#keys")

        drive(app, script)
        assert [fact.action for fact in acted(going.run)] == ["auto", "merge", "manual"]


def test_an_answer_does_not_wait_for_the_screen(tmp_path: Path) -> None:
    """What the run says is told at once, though the screen shows an instant before it."""
    with paced_run(tmp_path):
        app = console(tmp_path, "latest", speed=1.0, who="ann")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            await pilot.press("home")
            await until(pilot, lambda: "PAUSED" in text_of(app, "#top"), "the start")
            await pilot.press("a")
            await says(pilot, app, "ann: auto refused, controller=manual has no controller")
            await tune(pilot, app, "1.5")
            await says(pilot, app, "ann: tune policy.beta 1.5 accepted, policy.beta 1 -> 1.5")
            assert not app.screen.drawn.view.acts

        drive(app, script)


def test_read_only_has_no_action_anywhere(tmp_path: Path) -> None:
    """Not in the key line, not in the palette, not behind a key, not through the socket (case 25)."""
    with paced_run(tmp_path) as going:
        app = console(tmp_path, "latest", speed=1.0, who="eve", reads_only=True)

        async def script(pilot: "Pilot[None]") -> None:
            await until(pilot, lambda: "READ-ONLY" in text_of(app, "#top"), "read-only")
            await pilot.press("b")
            for key in of_kind("act"):
                await pilot.press("t" if key.name in ("copy", "reclaim") else "o", key.keys)
                why = f"{key.name} changes the run; this console was started with --read-only"
                assert why in text_of(app, "#message")
                assert app.screen.query("#overview")  # no dialog came up
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
            await says(pilot, app, "bob: drain 4x4 refused, bob drained it already")

        drive(app, script)


def test_two_consoles_split_the_same_worker_at_once(tmp_path: Path) -> None:
    """Both have looked at the preview and say yes: one is granted, both see whose, and both see the same."""
    shown = {}
    clock = StillClock()
    with paced_run(tmp_path, speed=1.0, clock=clock) as going:
        apps = {who: console(tmp_path, "latest", speed=1.0, who=who) for who in ("ann", "bob")}
        barrier = asyncio.Barrier(2)

        async def at(who: str) -> None:
            app = apps[who]
            async with app.run_test(size=(80, 24)) as pilot:
                await attached(pilot, app)
                await point(pilot, app, CpGroup(4, 4))
                await pilot.press("s")
                await until(pilot, lambda: "y or enter" in text_of(app, "#choice"), "the question")
                await barrier.wait()
                await pilot.press("y")
                await until(pilot, lambda: len(app.screen.drawn.view.acts) == 2, "both wishes")
                await until(pilot, passing(clock, lambda: CpGroup(6, 2) in _groups(app)), "the split")
                shown[who] = app.screen.drawn.view.acts
                await barrier.wait()

        async def both() -> None:
            await asyncio.gather(at("ann"), at("bob"))

        asyncio.run(both())
        going.finish()
    assert shown["ann"] == shown["bob"]
    granted, refused = sorted(shown["ann"], key=lambda act: not act.accepted)
    assert (granted.accepted, refused.accepted) == (True, False) and granted.who != refused.who
    assert "4x4" in refused.reason
    assert audit_run(going.run).is_clean


def _groups(app: ConsoleApp) -> set[CpGroup]:
    return {worker.group for worker in app.screen.drawn.view.workers if worker.state != "forming"}


def test_a_run_that_ends_under_a_preview(tmp_path: Path) -> None:
    """The dialog says that nothing can be changed any more, before anybody says yes; yes only closes it."""
    with paced_run(tmp_path) as going:
        app = console(tmp_path, "latest", speed=1.0, who="ann")

        async def script(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            await point(pilot, app, CpGroup(4, 4))
            await pilot.press("s")
            await until(pilot, lambda: "y or enter" in text_of(app, "#choice"), "the question")
            going.finish()
            await until(pilot, lambda: "nothing can be changed any more" in text_of(app, "#choice"), "over")
            await pilot.press("y")
            await says(pilot, app, "the run has ended: finished, VALID")
            assert [fact.action for fact in acted(going.run)] == ["speed"]

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
        await until(pilot, lambda: "No such file" in app.screen.desk.problem, "why")
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
