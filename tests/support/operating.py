"""Operators to test with: what they asked for, what their console says, where its cursor is."""

from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from tests.support.consoles import text_of, until
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import OperatorActed
from vertumnus.domain.units import BlockKey
from vertumnus.records.log import read_log
from vertumnus.records.run_dir import RunDir
from vertumnus_console.app import ConsoleApp
from vertumnus_console.desk import Link
from vertumnus_console.looks.places import copy_places, reclaim_places
from vertumnus_console.looks.trie import trie
from vertumnus_console.panes.trie import TriePane
from vertumnus_console.panes.workers import WorkersPane
from vertumnus_console.player import Player


def acted(run: RunDir) -> list[OperatorActed]:
    """What operators asked for, as the log has it."""
    return [record.body for record in read_log(run.log).records if isinstance(record.body, OperatorActed)]


async def attached(pilot: "Pilot[None]", app: ConsoleApp) -> None:
    """Wait until the console can act."""
    await until(pilot, lambda: app.screen.desk.link is Link.CONNECTED, "attached")
    await until(pilot, lambda: app.screen.drawn is not None, "drawn")


async def says(pilot: "Pilot[None]", app: ConsoleApp, text: str) -> None:
    """Wait until the message has *text*."""
    await until(pilot, lambda: text in text_of(app, "#message"), f"message {text!r}")


async def point(pilot: "Pilot[None]", app: ConsoleApp, group: CpGroup) -> None:
    """Put the cursor of the workers' table on *group*."""
    await pilot.press("w")
    await until(pilot, lambda: app.screen.query_one(WorkersPane).rows, "workers")
    app.screen.query_one(WorkersPane).point(group)
    await until(pilot, lambda: app.screen.selected == group, "the cursor")


async def tune(pilot: "Pilot[None]", app: ConsoleApp, value: str) -> None:
    """Write *value* for the first parameter, beta."""
    await pilot.press("p")
    await until(pilot, lambda: bool(app.screen.query("#settings")), "parameters")
    app.screen.query_one("#settings").focus()
    await pilot.press("home", "enter")
    field = app.screen.query_one("#value", Input)
    await until(pilot, lambda: not field.disabled, "the field")
    field.value = value
    await pilot.press("enter")


def can_be_copied(player: Player) -> tuple[BlockKey, CpGroup] | None:
    """A prefix, and a worker that it can be copied to; None when there is none now."""
    replay, now = player.replay, player.replay.now_ns or 0
    found = (
        (prefix.key, place.worker)
        for prefix in trie(replay, now).prefixes
        for place in copy_places(replay, prefix.key, now)
        if place.is_possible
    )
    return next(found, None)


def can_be_reclaimed(player: Player) -> tuple[BlockKey, CpGroup] | None:
    """A prefix, and a worker that can do without it; None when there is none now."""
    replay = player.replay
    found = (
        (prefix.key, place.worker)
        for prefix in trie(replay, 0).prefixes
        for place in reclaim_places(replay, prefix.key)
        if place.is_possible
    )
    return next(found, None)


async def choose(pilot: "Pilot[None]", app: ConsoleApp, key: str, what: BlockKey, where: CpGroup) -> None:
    """Put the cursor on prefix *what*, press *key*, and choose the line of *where*."""
    assert await look_for_places(pilot, app, key, what, where)
    await pick(pilot, app, where)


async def look_for_places(
    pilot: "Pilot[None]", app: ConsoleApp, key: str, what: BlockKey, where: CpGroup
) -> bool:
    """Put the cursor on *what* and press *key*; return whether *where* can be picked, else leave it."""
    pane = app.screen.query_one(TriePane)
    await until(pilot, lambda: any(row[0] == str(what) for row in pane.rows), "the prefix")
    pane.move_cursor([row[0] for row in pane.rows].index(str(what)))
    assert pane.pointed == what
    await pilot.press(key)
    await until(pilot, lambda: bool(app.screen.query("#places")), "the workers")
    options = app.screen.query_one("#places", OptionList)
    names = [option.id for option in options.options if not option.disabled]
    if str(where) not in names:
        await pilot.press("escape")
    return str(where) in names


async def pick(pilot: "Pilot[None]", app: ConsoleApp, where: CpGroup) -> None:
    """Choose the line of *where* among the workers that are shown."""
    options = app.screen.query_one("#places", OptionList)
    options.highlighted = options.get_option_index(str(where))
    await pilot.press("enter")
