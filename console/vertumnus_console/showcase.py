"""The pictures in the documents: ``python -m vertumnus_console.showcase FOLDER``, which is ``make pictures``.

A paced run of experiment reconfigure is recorded up to its rush hour and drawn as a worker is split by hand.
"""

import shutil
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from vertumnus_console.__main__ import console
from vertumnus_console.pictures import take_pictures
from vertumnus_console.recording import recorded

WORDS = (
    "+experiment=reconfigure",
    "backend.clock=paced",
    "backend.speed=1e6",
    "workload.requests=4500",
    "controller.script=[{at_s: 411, action: split, workers: [16x8]}]",
)
AT_S = 412.0
"""On the run's clock, while the worker drains [s]."""
SIZE = (100, 30)
"""Columns and lines."""
SHOWN = ("overview", "workers", "trie", "choice", "events", "preview")
"""The pictures that the documents show."""


def showcase(folder: Path) -> list[Path]:
    """Record the run and draw what the documents show of it into *folder*; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        run = recorded(Path(scratch), WORDS)
        app = console(run.path.parent, run.run_id, speed=1.0, at_s=AT_S)
        drawn = take_pictures(app, Path(scratch) / "pictures", SIZE)
        return [Path(shutil.copy(file, folder)) for file in drawn if file.stem in SHOWN]


def main(argv: Sequence[str]) -> int:
    """Draw the pictures; return the exit code."""
    parser = ArgumentParser("python -m vertumnus_console.showcase", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    for file in showcase(parser.parse_args(list(argv)).folder):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
