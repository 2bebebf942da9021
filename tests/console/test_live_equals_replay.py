"""What the screens of a live run showed at an instant, its replay shows there, to the letter."""

from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.consoles import drive, until
from tests.support.operating import attached
from tests.support.paced_runs import paced_run
from tests.support.still_clock import StillClock
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import SECOND, Nanoseconds
from vertumnus_console.__main__ import console
from vertumnus_console.app import ConsoleApp
from vertumnus_console.keys import of_kind
from vertumnus_console.panes.table import Table

INSTANTS_S = (3, 9)
"""At which the run is held and looked at; the operator acts in between."""

Screens = dict[str, list[object]]


async def every_screen(pilot: "Pilot[None]", app: ConsoleApp) -> Screens:
    """What each screen shows, once it is complete: the rows of its table, or its text."""
    seen: Screens = {}
    for key in of_kind("screen"):
        await pilot.press(key.keys)
        await until(pilot, lambda: app.screen.is_settled, f"{key.name} is complete")
        await pilot.pause(0.05)
        pane = app.screen.pane
        if isinstance(pane, Table):
            seen[key.name] = list(pane.rows)
        else:
            seen[key.name] = [str(static.content) for static in pane.query(Static)]
    return seen


def test_every_screen_at_sampled_instants(tmp_path: Path) -> None:
    """All eight screens, held at two instants between an operator's merge, drain and change of beta."""
    shown: list[tuple[Nanoseconds, Screens]] = []
    clock, speed = StillClock(), 20.0
    with paced_run(tmp_path, speed=speed, clock=clock) as going:
        ann = going.client("ann")
        app = console(tmp_path, "latest", speed=1.0, who="bob")

        async def live(pilot: "Pilot[None]") -> None:
            await attached(pilot, app)
            ann.wait(ann.act("merge", (CpGroup(32, 2), CpGroup(34, 2))), 30)
            for until_s in INSTANTS_S:
                clock.let_pass((until_s + 1) / speed - clock.now_s())
                await until(pilot, lambda u=until_s: app.screen.drawn.view.now_ns > u * SECOND, "it goes on")
                ann.wait(ann.act("tune", setting="policy.beta", value=float(until_s)), 30)
                told = f"-> {until_s}"
                await until(pilot, lambda t=told: t in str(app.screen.drawn.view.acts[-1]), "all is read")
                shown.append((app.screen.drawn.view.now_ns, await every_screen(pilot, app)))

        drive(app, live, size=(110, 40))
        clock.let_pass(0.01)  # what ends it comes after what was looked at
        going.finish()
    replayed = console(tmp_path, "latest", speed=1.0)

    async def replay(pilot: "Pilot[None]") -> None:
        for now, screens in shown:
            replayed.screen.feed.ask(lambda player, at=now: player.go_to(at + 1))
            await until(pilot, lambda at=now: _is_at(replayed, at + 1), "the instant")
            assert await every_screen(pilot, replayed) == screens

    drive(replayed, replay, size=(110, 40))
    assert len(shown) == len(INSTANTS_S)


def _is_at(app: ConsoleApp, at: Nanoseconds) -> bool:
    return app.screen.drawn is not None and app.screen.drawn.view.now_ns == at and app.screen.is_settled
