"""The processes of the bench of the feeds: runs to attach to, and consoles' feeds without a screen.

Runs are kept to one core and feeds to the others, where there are any: so two runs have the machine at the
same speed at any moment, and neither is moved about.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic, process_time, sleep
from typing import NamedTuple

import msgspec

from vertumnus.records.run_dir import RunDir, list_runs
from vertumnus_console.desk import Desk, Link
from vertumnus_console.feed import INTERVAL_S
from vertumnus_console.player import Player
from vertumnus_console.recording import recorded

HELD = 1e-6
"""Speed at which nothing comes."""
LOOK_S = 0.02
"""Between two looks whether another process is ready [s]."""


class Mark(NamedTuple):
    """How far a run was at one moment."""

    wall_s: float
    """The machine's monotonic clock, one for all processes."""
    ended: float
    """Requests."""
    cpu_s: float
    """CPU time that its process had taken, all threads."""


class Serving:
    """A paced run in a process of its own, held until it is told a speed."""

    def __init__(self, folder: Path, words: Sequence[str]) -> None:
        """Start it in *folder*, which is made."""
        folder.mkdir(parents=True)
        self._folder = folder
        self._process = _started("serve", str(folder), *words)
        self.kill = self._process.kill

    def attachable(self) -> RunDir:
        """Return the run once its action socket is there. Raises RuntimeError when it ends before."""
        while self._process.poll() is None:
            for listing in list_runs(self._folder):
                if listing.run.actions.exists():
                    return listing.run
            sleep(LOOK_S)
        raise RuntimeError(f"the run ended with {self._process.returncode} before anybody could attach")

    def marks(self) -> list[Mark]:
        """Wait for its end and return how far it was when."""
        return msgspec.json.decode(self._process.communicate()[0], type=list[Mark])


class Follower:
    """A feed in a process of its own that follows one of two runs."""

    def __init__(self, runs: Sequence[RunDir]) -> None:
        """Start it; it follows the first of *runs*."""
        self._process = _started("follow", *(str(run.path) for run in runs))
        self.kill = self._process.kill
        self.attach(0)

    def attach(self, number: int) -> None:
        """Let it hang up at the run that it follows, and follow *number* instead."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number}\n")
        self._process.stdin.flush()

    def wait(self) -> None:
        """Wait until it is attached for the first time."""
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def end(self) -> None:
        """End it, wherever it is."""
        self._process.kill()
        self._process.communicate()


def _started(*words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", "-m", "vertumnus_console.bench_processes", *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


# ---- in the processes -------------------------------------------------------------------------------


def keep_to_cores(*, is_run: bool) -> None:
    """Keep this process to the first core that it may use, where it *is_run*, else to the others."""
    first, *others = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, [first] if is_run or not others else others)


def serve(folder: Path, words: tuple[str, ...]) -> None:
    """Carry out the run and print its marks as JSON, ten a second."""
    keep_to_cores(is_run=True)
    marks: list[Mark] = []

    def tell(ended: int, planned: int) -> None:
        del planned
        marks.append(Mark(monotonic(), ended, process_time()))

    recorded(folder, (*words, "backend.clock=paced", f"backend.speed={HELD}"), tell)
    print(msgspec.json.encode(marks).decode())


def follow(runs: Sequence[RunDir]) -> None:
    """Do for one of *runs*, the one that stdin says last, what a console's feed does; end with stdin."""
    keep_to_cores(is_run=False)
    players = [Player(run, 1.0) for run in runs]
    for player in players:
        player.replay.pool.control.watch(None)  # placements priced in full are for a screen
    desks = [Desk(run.actions, "bench", reads_only=False) for run in runs]
    lines: SimpleQueue[str] = SimpleQueue()
    Thread(target=_read, args=(lines,), daemon=True).start()
    line, was_told = lines.get(), False
    while line:
        due = monotonic() + INTERVAL_S
        player, desk = players[int(line)], desks[int(line)]
        while player.turn(monotonic()):
            pass
        desk.turn(player.is_live, monotonic())
        player.snapshot()
        if not was_told and desk.state.link is Link.CONNECTED:
            print("attached", flush=True)
            was_told = True
        with suppress(Empty):
            line = lines.get(timeout=max(0.0, due - monotonic()))
            desk.close()
    for player in players:
        player.close()


def _read(lines: "SimpleQueue[str]") -> None:
    for line in sys.stdin:
        lines.put(line)
    lines.put("")


if __name__ == "__main__":
    what, *where = sys.argv[1:]
    if what == "serve":
        serve(Path(where[0]), tuple(where[1:]))
    else:
        follow([RunDir(Path(path)) for path in where])
