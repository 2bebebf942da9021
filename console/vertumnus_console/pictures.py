"""Pictures of every screen of a run, drawn without a terminal: ``vertumnus console --pictures FOLDER``."""

import asyncio
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from textual.pilot import Pilot

from vertumnus.config.wording import listed
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.move import Direction
from vertumnus_console.acting import OperatorScreen
from vertumnus_console.app import ConsoleApp
from vertumnus_console.comparing import CompareScreen
from vertumnus_console.dialogs.confirm import ConfirmMove
from vertumnus_console.dialogs.text import TextScreen
from vertumnus_console.player import Player
from vertumnus_console.saving import picture_of

LOOK_S = 0.02
"""Between two looks whether a screen is complete [s]."""
PATIENCE_S = 120.0
"""A screen that takes longer than this is not drawn [s]: a replay of a long run may take most of it."""


class Picture(NamedTuple):
    """One file and how to come to what it shows."""

    name: str
    keys: tuple[str, ...]
    """To press where the picture before it was taken."""


PICTURES = (
    Picture("overview", ("o", "b")),
    Picture("worker", ("enter",)),
    Picture("workers", ("escape", "w")),
    Picture("queues", ("u",)),
    Picture("trie", ("t",)),
    Picture("prefix", ("enter",)),
    Picture("choices", ("escape", "c")),
    Picture("choice", ("enter",)),
    Picture("events", ("escape", "e")),
    Picture("model", ("r",)),
    Picture("log", ("l",)),
)
"""A picture of a move comes last, where one is legal."""

SETTLING = (OperatorScreen, CompareScreen, ConfirmMove, TextScreen)
"""Screens that tell when they are complete."""


def take_pictures(app: ConsoleApp, folder: Path, size: tuple[int, int]) -> list[Path]:
    """Write a picture of every screen of *app*, *size* (columns, lines) large, and return the files.

    Raises ConfigError when *folder* cannot be written, or a screen is not complete in `PATIENCE_S`.
    """
    files: list[Path] = []

    async def script(pilot: Pilot[object]) -> None:
        await _settled(app)
        if isinstance(app.screen, CompareScreen):
            files.append(_write(app, folder, "compare"))
            app.exit()
            return
        for picture in PICTURES:
            await pilot.press(*picture.keys)
            await _settled(app)
            files.append(_write(app, folder, picture.name))
        if await _open_preview(app, pilot):
            files.append(_write(app, folder, "preview"))
        app.exit()

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        app.let_go()
        raise ConfigError(f"--pictures {folder}: {error.strerror}") from error
    app.run(headless=True, size=size, auto_pilot=script)
    return files


def require_no_pictures(folder: Path) -> None:
    """Raise ConfigError where a picture in *folder* would be replaced."""
    names = ("compare", *(picture.name for picture in PICTURES), "preview")
    there = [f"{name}.svg" for name in names if (folder / f"{name}.svg").exists()]
    if there:
        raise ConfigError(f"--pictures: {folder} has {listed(there)} already; --force replaces what is there")


def legal_move(player: Player) -> tuple[Direction, CpGroup] | None:
    """Return a worker that can be merged with its sibling now, or else split; None when there is none."""
    control = player.replay.pool.control
    directions: tuple[Direction, ...] = "merge", "split"
    for direction in directions:
        for group in control.pool.groups:
            workers = (group, group.sibling) if direction == "merge" else (group,)
            try:
                control.legal_move(direction, workers)
            except ConfigError:
                continue
            return direction, group
    return None


async def _open_preview(app: ConsoleApp, pilot: Pilot[object]) -> bool:
    """Open the preview of a move in front of the overview; return False when there is no legal one."""
    await pilot.press("o")
    screen = app.screen
    assert isinstance(screen, OperatorScreen)
    move = await asyncio.wrap_future(screen.feed.answer(legal_move))
    if move is None:
        return False
    kind, worker = move
    screen.select(worker)
    await app.run_action(f"screen.{kind}")
    await _settled(app)
    return True


async def _settled(app: ConsoleApp) -> None:
    """Wait until the screen in front shows all that it is going to show."""
    end = monotonic() + PATIENCE_S
    while not _is_settled(app):
        if monotonic() > end:
            raise ConfigError(f"--pictures: a screen was not complete after {PATIENCE_S:g} s")
        await asyncio.sleep(LOOK_S)
    await app.animator.wait_for_idle()
    await asyncio.sleep(LOOK_S)  # the last changes are drawn


def _is_settled(app: ConsoleApp) -> bool:
    screen = app.screen
    return screen.is_settled if isinstance(screen, SETTLING) else True


def _write(app: ConsoleApp, folder: Path, name: str) -> Path:
    file = folder / f"{name}.svg"
    try:
        file.write_text(picture_of(app, "vertumnus console"))
    except OSError as error:
        raise ConfigError(f"--pictures {folder}: {error.strerror}") from error
    return file
