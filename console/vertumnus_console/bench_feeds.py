"""What consoles cost the run that they are attached to: its CPU time a request, with feeds and without.

Two like runs go at the same time, each a paced simulation in a process of its own that is held until all is
attached: one has the feeds, the other none. Whatever else the machine does falls on both, the work of the
feeds themselves, too. Each pair gives one ratio; which of the two has the feeds changes from pair to pair.
Pairs without any feed tell how far two like runs differ anyway.
"""

import subprocess
import sys
from collections.abc import Sequence
from math import comb
from pathlib import Path
from statistics import median
from threading import Thread
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


class Interval(NamedTuple):
    """A median, and two values between which the true one lies, as surely as `LEVEL` where it can be."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} [{self.low:.3f}-{self.high:.3f}]"


LEVEL = 0.95


class Cost(NamedTuple):
    """A run's CPU time with feeds attached against that of a like one beside it."""

    feeds: int
    requests: int
    alone_us: tuple[float, ...]
    """Of each run without feeds [us a request]."""
    ratios: tuple[float, ...]
    """With feeds / without, pair by pair."""
    alike: tuple[float, ...]
    """Of pairs in which neither has any."""

    def __str__(self) -> str:
        return (
            f"coordinator with {self.feeds} feeds / without, at the same time: {interval(self.ratios)}, "
            f"two without: {interval(self.alike)}; {median(self.alone_us):.0f} us CPU a request, "
            f"{len(self.ratios)} pairs of {self.requests:,} requests, {LEVEL:.0%} of the median"
        )


def interval(values: Sequence[float]) -> Interval:
    """Return the median of *values* between two of them, the innermost that hold it at `LEVEL`.

    Of n values, the true median is below the k-th or above the k-th from the top with twice the binomial
    probability of fewer than k; below six values even the outermost two are less sure.
    """
    ordered, count = sorted(values), len(values)
    outside, place = 0.0, 0
    for below in range(count // 2):
        outside += 2 * comb(count, below) / 2**count
        if outside > 1.0 - LEVEL:
            break
        place = below
    return Interval(median(ordered), ordered[place], ordered[count - 1 - place])


def cost(scratch: Path, words: Sequence[str], *, feeds: int, requests: int, speed: float, pairs: int) -> Cost:
    """Measure *pairs* pairs of runs of *words* at *speed*, one with *feeds* consoles, and as many without."""
    alone: list[float] = []
    ratios: list[float] = []
    alike: list[float] = []
    for number in range(pairs):
        for count, told in ((feeds, ratios), (0, alike)):
            folder = scratch / f"{number}-{count}"
            watched, other = _pair(folder, words, number % 2, feeds=count, requests=requests, speed=speed)
            told.append(watched / other)
            alone.append(1e6 * other / requests)
    return Cost(feeds, requests, tuple(alone), tuple(ratios), tuple(alike))


def _pair(
    folder: Path, words: Sequence[str], first: int, *, feeds: int, requests: int, speed: float
) -> tuple[float, float]:
    """Return the CPU seconds of the run that the feeds follow, number *first*, and of the other."""
    folder.mkdir()
    servings = [_serving(folder / str(number), words, requests) for number in range(2)]
    runs = [_attachable(folder / str(number), serving) for number, serving in enumerate(servings)]
    followers = [_started("follow", str(runs[first].path)) for _ in range(feeds)]
    for follower in followers:
        assert follower.stdout is not None
        follower.stdout.readline()  # it says that it is attached
    clients = [ActionClient(run.actions, "bench") for run in runs]
    for serving, client in zip(servings, clients, strict=True):
        assert serving.stdin is not None
        serving.stdin.write("from here on\n")
        serving.stdin.flush()
        client.act("speed", value=speed)
    seconds = [float(serving.communicate()[0]) for serving in servings]
    for client in clients:
        client.close()
    for follower in followers:
        follower.communicate()
    return seconds[first], seconds[1 - first]


def _serving(folder: Path, words: Sequence[str], requests: int) -> "subprocess.Popen[str]":
    folder.mkdir()
    return _started("serve", str(folder), *words, f"workload.requests={requests}")


def _started(*words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "vertumnus_console.bench_feeds", *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _attachable(folder: Path, serving: "subprocess.Popen[str]") -> RunDir:
    while serving.poll() is None:
        for listing in list_runs(folder):
            if listing.run.actions.exists():
                return listing.run
        sleep(LOOK_S)
    raise RuntimeError(f"the run ended with {serving.returncode} before anybody could attach")


# ---- the processes ----------------------------------------------------------------------------------


def serve(folder: Path, words: tuple[str, ...]) -> None:
    """Carry out the run and print the CPU seconds that it took from a line on stdin on, tables included."""
    begun = []

    def begin() -> None:
        sys.stdin.readline()
        begun.append(process_time())

    Thread(target=begin, daemon=True).start()
    recorded(folder, (*words, "backend.clock=paced", f"backend.speed={HELD}"))
    print(process_time() - begun[0])


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
