"""``python -m vertumnus_console``: what ``vertumnus console`` starts."""

import getpass
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from vertumnus.commandline.console import console_parser
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.commandline.messages import report_problems
from vertumnus.domain.errors import ConfigError
from vertumnus.records.run_dir import Listing, find_run, list_runs
from vertumnus_console.app import ConsoleApp
from vertumnus_console.desk import Desk
from vertumnus_console.feed import Feed
from vertumnus_console.keymap import keymap_path, read_keymap
from vertumnus_console.player import Player
from vertumnus_console.screen import Shown


def main(argv: Sequence[str]) -> int:
    """Show the run that *argv* names; return the exit code."""
    try:
        read = console_parser().parse_args(list(argv))
        app = console(
            read.runs_dir,
            read.run,
            read.speed,
            who=read.who or operator(),
            reads_only=read.read_only,
            keymap=read_keymap(keymap_path()),
        )
    except ConfigError as error:
        report_problems(error.problems)
        return BAD_INPUT
    app.run()
    return app.return_code or OK


def console(
    runs_dir: Path,
    wanted: str,
    speed: float,
    *,
    who: str = "operator",
    reads_only: bool = False,
    keymap: dict[str, str] | None = None,
) -> ConsoleApp:
    """Return the application on the run that *wanted* names, "latest" for the newest, going or not.

    Raises ConfigError when there is no such run, or its log cannot be replayed by this version.
    """
    listing = _newest(runs_dir) if wanted == "latest" else find_run(runs_dir, wanted)
    player = Player(listing.run, speed)
    desk = Desk(listing.run.actions, who, reads_only=reads_only)
    shown = Shown(listing.run.run_id, listing.name, player.header)
    return ConsoleApp(Feed(player, desk), shown, keymap)


def operator() -> str:
    """Return who sits here: the user, and the terminal where there is one, so that two are told apart."""
    try:
        terminal = os.ttyname(sys.stdin.fileno()).removeprefix("/dev/")
    except (OSError, ValueError):
        terminal = ""
    return f"{getpass.getuser()}@{terminal}" if terminal else getpass.getuser()


def _newest(runs_dir: Path) -> Listing:
    listings = list_runs(runs_dir)
    if not listings:
        raise ConfigError(
            f"no run in {runs_dir}; start one (vertumnus +experiment=tool_agent), "
            "or say where they are (--runs-dir DIR)"
        )
    return listings[-1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
