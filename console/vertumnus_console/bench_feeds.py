"""What consoles cost the run that they are attached to: its CPU time a request, with feeds and without.

Two like runs serve the same requests at the same time, on one core; the feeds, on other cores, follow now the
one and now the other. A leg is a stretch of time in which they stay, and its ratio is what the first run took
for the requests of that leg by what the second took for the same ones. Whatever else the machine does falls
on both, the work of the feeds themselves, too; how far two like processes differ for good is in the ratios of
all legs. So of two legs beside one another, with the feeds once at the first run and once at the second, one
ratio by the other is the cost squared. Legs go 0 1 1 0 0 1 1 0 ...: two in a row with the feeds at the same
run tell what two that are alike differ by anyway.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from itertools import pairwise
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vertumnus.actions.client import ActionClient, NotConnected
from vertumnus.domain.wording import counted
from vertumnus_console.bench_processes import Follower, Mark, Serving
from vertumnus_console.intervals import LEVEL, interval

Floats: TypeAlias = NDArray[np.float64]

WARM_S = 4.0
"""What comes before the first leg: a run tells nothing of its first two seconds [s]."""
FAST = 1e6
"""Speed at which a run comes to its end after the last leg."""


class Leg(NamedTuple):
    """A stretch of time in which the feeds follow one of the two runs."""

    begin_s: float
    end_s: float
    followed: int
    """Number of the run, 0 or 1."""


class Cost(NamedTuple):
    """A run's CPU time with feeds attached against that of a like one beside it."""

    feeds: int
    alone_us: float
    """Of the run without feeds, the median leg [us a request]."""
    requests: float
    """Of each run, in all legs."""
    ratios: tuple[float, ...]
    """With feeds / without, pair by pair of legs."""
    alike: tuple[float, ...]
    """Of pairs of legs in which the feeds follow the same run."""

    def __str__(self) -> str:
        return (
            f"coordinator's CPU a request with {self.feeds} feeds / without: {interval(self.ratios):.3f}, "
            f"two legs that are alike: {interval(self.alike):.3f}; {self.alone_us:.0f} us a request, "
            f"{counted(len(self.ratios), 'pair')} of legs, {self.requests:,.0f} requests, {LEVEL:.0%} "
            f"of the median"
        )

    def misses(self, bar: float) -> Iterator[str]:
        """Yield where the median of the ratios is above *bar*."""
        if (ratio := interval(self.ratios).median) > bar:
            yield f"{self.feeds} feeds: {ratio:.3f} times the CPU a request, at most {bar:g} are meant"


def cost(scratch: Path, words: Sequence[str], *, feeds: int, speed: float, legs: int, leg_s: float) -> Cost:
    """Measure *legs* legs of *leg_s* seconds on two runs of *words* at *speed*, with *feeds* consoles."""
    with ExitStack() as stack:
        servings = [Serving(scratch / str(number), words) for number in range(2)]
        for serving in servings:
            stack.callback(serving.kill)
        runs = [serving.attachable() for serving in servings]
        followers = [Follower(runs) for _ in range(feeds)]
        for follower in followers:
            stack.callback(follower.kill)
            follower.wait()
        clients = [stack.enter_context(closing(ActionClient(run.actions, "bench"))) for run in runs]
        _go_at(speed, clients)
        sleep(WARM_S)
        gone = [_leg(followers, followed, leg_s) for followed in order(legs)]
        for follower in followers:
            follower.end()
        with suppress(NotConnected):  # it has ended already
            _go_at(FAST, clients)
        return compared(feeds, gone, *(serving.marks() for serving in servings))


def _go_at(speed: float, clients: Iterable[ActionClient]) -> None:
    for client in clients:
        client.act("speed", value=speed)


def order(legs: int) -> list[int]:
    """Return which run is followed in each of *legs* legs: 0 1 1 0 0 1 1 0 ..."""
    return [(leg + 1) // 2 % 2 for leg in range(legs)]


def _leg(followers: Sequence[Follower], followed: int, leg_s: float) -> Leg:
    begin = monotonic()
    for follower in followers:
        follower.attach(followed)
    sleep(leg_s)
    return Leg(begin, monotonic(), followed)


def compared(feeds: int, legs: Sequence[Leg], first: Sequence[Mark], second: Sequence[Mark]) -> Cost:
    """Return the cost that the *legs* show, one after the other, with what two runs told of themselves."""
    edges = [leg.begin_s for leg in legs] + [legs[-1].end_s]
    ended = np.interp(edges, [mark.wall_s for mark in first], [mark.ended for mark in first])
    one, other = (_taken(marks, ended) for marks in (first, second))
    changes = np.sqrt((one / other)[:-1] / (one / other)[1:])
    ratios, alike = [], []
    for change, (before, after) in zip(changes.tolist(), pairwise(legs), strict=True):
        if before.followed == after.followed:
            alike.append(change)
        else:
            ratios.append(change if before.followed == 0 else 1 / change)
    alone = np.where([leg.followed == 0 for leg in legs], other, one) / np.diff(ended)
    return Cost(feeds, 1e6 * float(np.median(alone)), ended[-1] - ended[0], tuple(ratios), tuple(alike))


def _taken(marks: Sequence[Mark], ended: Floats) -> Floats:
    """Return the CPU time that a run took from each number of *ended* requests to the next [s]."""
    return np.diff(np.interp(ended, [mark.ended for mark in marks], [mark.cpu_s for mark in marks]))
