"""Consoles to test with: a log that grows, an application driven by a pilot."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic

from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.recorded import a_ulid
from vertumnus.domain.codec import Record
from vertumnus.records.log import LogWriter, read_log
from vertumnus.records.provenance import RunStart
from vertumnus.records.run_dir import RunDir
from vertumnus_console.app import ConsoleApp
from vertumnus_console.player import Player

PATIENCE_S = 300.0
"""With what never comes: a limit for a test that fails, however busy the machine is [s]."""


class GrowingRun:
    """A run that is still going: the first part of another's log, and the rest when asked."""

    def __init__(self, runs_dir: Path, source: RunDir, name: str = "trial", number: int = 1) -> None:
        start = RunStart(run_id=a_ulid(number), name=name, overrides=())
        self.run = RunDir.create(runs_dir, start, "")
        header, records = read_log(source.log)
        self._writer = LogWriter(self.run.log, header)
        self.left: list[Record] = list(records)
        """Not written yet."""

    def grow(self, share: float = 1.0) -> None:
        """Write *share* of what is left."""
        count = int(share * len(self.left))
        now, self.left = self.left[:count], self.left[count:]
        for record in now:
            self._writer.append(*record)
        self._writer.flush()

    def tell(self, record: Record) -> None:
        """Write a record that the other log does not have."""
        self._writer.append(*record)
        self._writer.flush()

    def end(self) -> None:
        """Let the log go, as a killed run does."""
        self._writer.close()


def settled(player: Player, wall_s: float = 0.0) -> Player:
    """Return *player* when it has arrived where it was sent."""
    while player.turn(wall_s):
        pass
    return player


def drive(
    app: ConsoleApp,
    script: Callable[["Pilot[None]"], Awaitable[None]],
    size: tuple[int, int] = (80, 24),
) -> None:
    """Run *script* against *app* on a screen of *size*."""

    async def go() -> None:
        async with app.run_test(size=size) as pilot:
            await script(pilot)

    asyncio.run(go())


async def until(pilot: "Pilot[None]", condition: Callable[[], bool], what: str) -> None:
    """Let the application go on until *condition* holds; fail when it does not come to hold."""
    given_up = monotonic() + PATIENCE_S
    while not condition():
        assert monotonic() < given_up, f"never: {what}"
        await pilot.pause(0.02)


def text_of(app: ConsoleApp, selector: str) -> str:
    """Return what the Static that *selector* finds shows; nothing while there is none."""
    found = app.screen.query(selector)
    if not found:
        return ""
    content = found.first(Static).content
    return content.plain if isinstance(content, Content) else str(content)
