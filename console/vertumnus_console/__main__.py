"""``python -m vertumnus_console``: what ``vertumnus console`` starts."""

import sys
from collections.abc import Sequence
from pathlib import Path

from vertumnus.commandline.console import console_parser
from vertumnus.commandline.exit_codes import BAD_INPUT, OK
from vertumnus.commandline.messages import report_problems
from vertumnus.domain.errors import ConfigError
from vertumnus.records.run_dir import Listing, find_run, list_runs
from vertumnus_console.app import ConsoleApp, Shown
from vertumnus_console.feed import Feed
from vertumnus_console.player import Player


def main(argv: Sequence[str]) -> int:
    """Show the run that *argv* names; return the exit code."""
    try:
        read = console_parser().parse_args(list(argv))
        app = console(read.runs_dir, read.run, read.speed)
    except ConfigError as error:
        report_problems(error.problems)
        return BAD_INPUT
    app.run()
    return app.return_code or OK


def console(runs_dir: Path, wanted: str, speed: float) -> ConsoleApp:
    """Return the application on the run that *wanted* names, "latest" for the newest, going or not.

    Raises ConfigError when there is no such run, or its log cannot be replayed by this version.
    """
    listing = _newest(runs_dir) if wanted == "latest" else find_run(runs_dir, wanted)
    player = Player(listing.run, speed)
    return ConsoleApp(Feed(player), Shown(listing.run.run_id, listing.name, player.header, speed))


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
