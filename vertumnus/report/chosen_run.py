"""The run that a command is about, and a word where "latest" may not be the one that was meant."""

import sys
from pathlib import Path

from vertumnus.records.run_dir import Listing, find_run, list_runs


def chosen_run(runs_dir: Path, wanted: str) -> Listing:
    """Return the run that *wanted* names; of "latest", say on stderr that a newer one has not ended.

    Raises ConfigError when no run or more than one fits.
    """
    listing = find_run(runs_dir, wanted)
    newest = list_runs(runs_dir)[-1].run.run_id
    if wanted == "latest" and newest != listing.run.run_id:
        print(f"the latest run that has ended; {newest} began after it", file=sys.stderr)
    return listing
