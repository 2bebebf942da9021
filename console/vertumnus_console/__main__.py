"""``python -m vertumnus_console``: what ``vertumnus console`` starts."""

import getpass
import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from vertumnus.commandline.console import console_parser
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.commandline.messages import report_problems
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import to_ns
from vertumnus.records.run_dir import Listing, find_run, list_runs
from vertumnus.run.simulated import rare_collections
from vertumnus_console.acting import OperatorScreen
from vertumnus_console.app import ConsoleApp
from vertumnus_console.comparing import CompareScreen
from vertumnus_console.desk import Desk
from vertumnus_console.feed import Feed
from vertumnus_console.keymap import keymap_path, read_keymap
from vertumnus_console.pair import Pair
from vertumnus_console.pictures import require_no_pictures, take_pictures
from vertumnus_console.player import Player
from vertumnus_console.shelf import Shelf
from vertumnus_console.shown import Shown


def main(argv: Sequence[str]) -> int:
    """Show the run, or the two, that *argv* names; return the exit code."""
    try:
        read = console_parser().parse_args(list(argv))
        if read.pictures is not None and not read.force:
            require_no_pictures(read.pictures)
        app = asked_for(read)
        if read.pictures is not None:
            print(*take_pictures(app, read.pictures, read.size), sep="\n")
            return OK
    except ConfigError as error:
        report_problems(error.problems)
        return BAD_INPUT
    with rare_collections():  # a replayed pool is millions of objects that stay
        app.run()
    return app.return_code or OK


def asked_for(read: Namespace) -> ConsoleApp:
    """Return the application that the words on the command line ask for; raises ConfigError."""
    keymap = read_keymap(keymap_path())
    if len(read.runs) == 2:
        return comparison(
            read.runs_dir, read.runs, read.speed, keymap=keymap, at_s=read.at, is_light=read.light
        )
    return console(
        read.runs_dir,
        read.runs[0] if read.runs else "latest",
        read.speed,
        who=read.who or operator(),
        reads_only=read.read_only,
        keymap=keymap,
        at_s=read.at,
        is_light=read.light,
    )


def console(
    runs_dir: Path,
    wanted: str,
    speed: float,
    *,
    who: str = "operator",
    reads_only: bool = False,
    keymap: Mapping[str, str] | None = None,
    at_s: float | None = None,
    is_light: bool = False,
) -> ConsoleApp:
    """Return the application on the run that *wanted* names, "latest" for the newest that is going.

    Where none is going, that is the newest. It begins at the run's end, or paused at *at_s* seconds of the
    run. Raises ConfigError when there is no such run, or its log cannot be replayed by this version.
    """
    keys = dict(keymap or {})
    feed, shown = _opened(runs_dir, wanted, speed, at_s, who=who, reads_only=reads_only)
    return ConsoleApp([feed], lambda: OperatorScreen(feed, shown, keys), keys, is_light=is_light)


def comparison(
    runs_dir: Path,
    wanted: Sequence[str],
    speed: float,
    *,
    keymap: Mapping[str, str] | None = None,
    at_s: float | None = None,
    is_light: bool = False,
) -> ConsoleApp:
    """Return the application on the two runs that *wanted* names, side by side; raises ConfigError."""
    keys = dict(keymap or {})
    (first, shown), (second, beside) = [_opened(runs_dir, name, speed, at_s) for name in wanted]
    pair = Pair(first, second, speed)
    pair.follows = at_s is None
    return ConsoleApp(pair.feeds, lambda: CompareScreen(pair, shown, beside, keys), keys, is_light=is_light)


def _opened(
    runs_dir: Path,
    wanted: str,
    speed: float,
    at_s: float | None,
    *,
    who: str = "operator",
    reads_only: bool = True,
) -> tuple[Feed, Shown]:
    listing = _newest(runs_dir) if wanted == "latest" else find_run(runs_dir, wanted)
    player = Player(listing.run, speed, Shelf(listing.run.log))
    if at_s is not None:
        player.go_to(to_ns(at_s))
    desk = Desk(listing.run.actions, who, reads_only=reads_only)
    return Feed(player, desk), Shown(listing.run.run_id, listing.name, player.header)


def operator() -> str:
    """Return who sits here: the user, and the terminal where there is one, so that two are told apart."""
    try:
        terminal = os.ttyname(sys.stdin.fileno()).removeprefix("/dev/")
    except (OSError, ValueError):
        terminal = ""
    return f"{getpass.getuser()}@{terminal}" if terminal else getpass.getuser()


def _newest(runs_dir: Path) -> Listing:
    """Return the newest run that is going; where none is, the newest. Raises ConfigError."""
    listings = list_runs(runs_dir)
    if not listings:
        raise ConfigError(
            f"no run in {runs_dir}; start one (vertumnus +experiment=tool_agent), "
            "or say where they are (--runs-dir DIR)"
        )
    return next((each for each in reversed(listings) if each.status == "running"), listings[-1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
