"""Which point of a sweep is measured next, and what its samples say in the end.

Round after round over all points, so that a busy spell hits each of them alike. A sample that others
disturbed is followed by another one of its point, within a bound: a machine that never gets quiet still
ends, with times that say so.

A machine's speed changes by itself, too, for seconds at a time (clocks, neighbours on the same host), and
nothing here tells. So a point's time is how many yardsticks it takes, times what the yardstick takes in the
middle of the whole sweep: what slows down both cancels.
"""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from vertumnus.live.calibrate import BUSY_SHARE
from vertumnus_profiling.grid import SweepPoint
from vertumnus_profiling.samples import StepSample

MOST_TRIES = 3
"""Samples of a point, disturbed ones included, for each quiet one that is wanted."""


class MeasuredPoint(NamedTuple):
    """A point and its times."""

    point: SweepPoint
    wall_s: float
    cpu_per_rank_s: float
    is_quiet: bool
    """Whether there were undisturbed samples; else the times are those of all samples."""


class Schedule:
    """Hands out points until each has enough samples."""

    def __init__(self, points: Sequence[SweepPoint], repeats: int, known: Iterable[StepSample] = ()) -> None:
        """Want *repeats* quiet samples of each of *points*; *known* ones count."""
        self._repeats = repeats
        self._quiet: Counter[SweepPoint] = Counter()
        self._tries: Counter[SweepPoint] = Counter()
        self._queue = deque(points)
        self._points = tuple(points)
        for sample in known:
            self.note(sample)

    def next(self) -> SweepPoint | None:
        """Return the point to be sampled now; None when all have enough."""
        while self._queue:
            point = self._queue.popleft()
            if not self._is_done(point):
                self._queue.append(point)
                return point
        return None

    def note(self, sample: StepSample) -> None:
        """Count *sample*."""
        point = point_of(sample)
        self._tries[point] += 1
        self._quiet[point] += is_quiet(sample.others)

    @property
    def total(self) -> int:
        """Samples wanted if nothing is disturbed."""
        return self._repeats * len(self._points)

    @property
    def done(self) -> int:
        """How many of `total` are there; disturbed samples bring a point nearer to its bound."""
        return sum(self._progress(point) for point in self._points) // MOST_TRIES

    def _progress(self, point: SweepPoint) -> int:
        """Return how far *point* has come, `MOST_TRIES` for each sample that is wanted of it."""
        if self._is_done(point):
            return MOST_TRIES * self._repeats
        return max(self._tries[point], MOST_TRIES * self._quiet[point])

    def _is_done(self, point: SweepPoint) -> bool:
        return self._quiet[point] >= self._repeats or self._tries[point] >= MOST_TRIES * self._repeats


def is_quiet(others: float | None) -> bool:
    """Return whether others used so little of the cores that a sample counts."""
    return (others or 0.0) <= BUSY_SHARE


def point_of(sample: StepSample) -> SweepPoint:
    """Return what *sample* is a sample of."""
    return SweepPoint(sample.degree, sample.uncached, sample.cached)


def measured_points(points: Sequence[SweepPoint], samples: Iterable[StepSample]) -> list[MeasuredPoint]:
    """Return the times of each of *points* that has samples."""
    by_point: dict[SweepPoint, list[StepSample]] = {}
    by_degree: dict[int, list[StepSample]] = {}
    for sample in samples:
        by_point.setdefault(point_of(sample), []).append(sample)
        by_degree.setdefault(sample.degree, []).append(sample)
    yards = {degree: _yardstick(of_degree) for degree, of_degree in by_degree.items()}
    return [_measured(point, by_point[point], yards[point.degree]) for point in points if point in by_point]


def _yardstick(samples: Sequence[StepSample]) -> tuple[float, float]:
    """Return what the yardstick takes at one degree, wall and CPU time [s]."""
    usable = _usable(samples)
    return median(s.wall_yard_s for s in usable), median(s.cpu_yard_s for s in usable)


def _measured(
    point: SweepPoint, samples: Sequence[StepSample], yardstick: tuple[float, float]
) -> MeasuredPoint:
    usable = _usable(samples)
    wall_s = median(s.wall_ratio for s in usable) * yardstick[0]
    cpu_s = median(s.cpu_ratio for s in usable) * yardstick[1]
    return MeasuredPoint(point, wall_s, cpu_s, is_quiet(usable[0].others))


def _usable(samples: Sequence[StepSample]) -> Sequence[StepSample]:
    """Return the undisturbed samples, or all where there is none."""
    return [sample for sample in samples if is_quiet(sample.others)] or samples
