"""What consoles cost the run that they are attached to: its CPU time a request, with feeds and without.

Each run is a paced simulation in a process of its own, held until the feeds are attached. Runs with and
without feeds take turns, and each pair gives one ratio, so that what else the machine does falls on both.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import process_time, sleep
from typing import NamedTuple

from vertumnus.actions.client import ActionClient
from vertumnus.records.run_dir import RunDir, list_runs
from vertumnus_console.desk import Desk, Link
from vertumnus_console.feed import Feed
from vertumnus_console.player import Player
from vertumnus_console.recording import recorded

HELD = 1e-6
"""Speed at which nothing comes."""
LOOK_S = 0.02
"""Between two looks whether another process is ready [s]."""


class Cost(NamedTuple):
    """The coordinator's CPU time with feeds attached against none."""

    feeds: int
    requests: int
    alone_us: tuple[float, ...]
    """Of each run without feeds [us a request]."""
    ratios: tuple[float, ...]
    """With feeds / without, pair by pair."""

    def __str__(self) -> str:
        low, high = min(self.ratios), max(self.ratios)
        return (
            f"coordinator with {self.feeds} feeds / with none: {median(self.ratios):.3f} "
            f"[{low:.3f}-{high:.3f}] of {median(self.alone_us):.0f} us CPU a request, "
            f"{len(self.ratios)} pairs of {self.requests:,} requests"
        )


def cost(scratch: Path, words: Sequence[str], *, feeds: int, requests: int, speed: float, pairs: int) -> Cost:
    """Measure runs of *words* at *speed* with *feeds* consoles and with none, *pairs* times."""
    alone, ratios = [], []
    for number in range(pairs):
        seconds = {}
        for count in (0, feeds) if number % 2 else (feeds, 0):
            folder = scratch / f"{number}-{count}"
            seconds[count] = _cpu_s(folder, words, feeds=count, requests=requests, speed=speed)
        alone.append(1e6 * seconds[0] / requests)
        ratios.append(seconds[feeds] / seconds[0])
    return Cost(feeds, requests, tuple(alone), tuple(ratios))


def _cpu_s(folder: Path, words: Sequence[str], *, feeds: int, requests: int, speed: float) -> float:
    folder.mkdir()
    serving = _started("serve", str(folder), *words, f"workload.requests={requests}")
    run = _attachable(folder, serving)
    followers = [_started("follow", str(run.path)) for _ in range(feeds)]
    for follower in followers:
        assert follower.stdout is not None
        follower.stdout.readline()  # it says that it is attached
    client = ActionClient(run.actions, "bench")
    client.act("speed", value=speed)
    told, _ = serving.communicate()
    client.close()
    for follower in followers:
        follower.communicate()
    return float(told)


def _started(*words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "vertumnus_console.bench_feeds", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _attachable(folder: Path, serving: "subprocess.Popen[str]") -> RunDir:
    while serving.poll() is None:
        for listing in list_runs(folder):
            if listing.run.actions.exists():
                return listing.run
        sleep(LOOK_S)
    raise RuntimeError(f"the run ended with {serving.returncode} before anybody could attach")


# ---- the processes ----------------------------------------------------------------------------------


def serve(folder: Path, words: tuple[str, ...]) -> None:
    """Carry out the run and print the CPU seconds that it took, start and tables included."""
    before = process_time()
    recorded(folder, (*words, "backend.clock=paced", f"backend.speed={HELD}"))
    print(process_time() - before)


def follow(run: RunDir) -> None:
    """Follow *run* as a console's feed does, say when it is attached, and end with the run."""
    feed = Feed(Player(run, 1.0), Desk(run.actions, "bench", reads_only=False))
    feed.start()
    while feed.desk.link is not Link.CONNECTED:
        sleep(LOOK_S)
    print("attached", flush=True)
    while feed.latest is None or feed.latest.is_live:
        sleep(LOOK_S)
    feed.stop()


if __name__ == "__main__":
    what, where, *others = sys.argv[1:]
    serve(Path(where), tuple(others)) if what == "serve" else follow(RunDir(Path(where)))
