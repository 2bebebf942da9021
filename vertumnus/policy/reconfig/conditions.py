"""What a single window shows: demand outside its band, or a long fraction off its stable level (sec. 6.2)."""

from collections import deque
from math import sqrt
from typing import Literal, NamedTuple, TypeAlias

from vertumnus.domain.move import Direction
from vertumnus.policy.reconfig.config import Thresholds
from vertumnus.policy.reconfig.window import WindowReport

Cause: TypeAlias = Literal["capacity", "mix"]

CHANCE = 2.0
"""Standard errors that a change of the mix must exceed: one window in 20 does by chance."""


class Condition(NamedTuple):
    """What one rule asks for in one window."""

    cause: Cause
    direction: Direction
    text: str
    """The rule with its numbers."""


class _Tally(NamedTuple):
    """What one or more windows say about the mix."""

    long: int = 0
    """Requests or tokens of long requests."""
    counted: int = 0
    """Requests or tokens."""
    requests: int = 0

    def plus(self, other: "_Tally") -> "_Tally":
        return _Tally(self.long + other.long, self.counted + other.counted, self.requests + other.requests)

    @property
    def fraction(self) -> float | None:
        return self.long / self.counted if self.counted else None


class StableMix:
    """The long fraction that the composition was chosen for.

    It is pooled over the windows since the last transition in which it had not moved, begun with the
    last few windows before that transition; at the start, with the first few windows, until which there
    is nothing to compare with. Windows without arrivals say nothing.
    """

    def __init__(self, windows: int) -> None:
        """Take the number of windows that make a level."""
        self._recent: deque[_Tally] = deque(maxlen=windows)
        self._windows = windows
        self._level = _Tally()

    @property
    def fraction(self) -> float | None:
        """The stable long fraction so far; None before the first arrival."""
        return self._level.fraction

    def change(self, report: WindowReport) -> float | None:
        """Return by how much a window's long fraction differs from the level; None when it cannot be said."""
        now, level = report.long_fraction, self.fraction
        is_settled = len(self._recent) == self._windows
        return None if now is None or level is None or not is_settled else now - level

    def noise(self, report: WindowReport) -> float:
        """Return the standard error of that difference between samples of an unchanged mix."""
        both = self._level.plus(_tally(report))
        fraction = both.fraction or 0.0
        samples = 1 / max(1, report.requests) + 1 / max(1, self._level.requests)
        return sqrt(fraction * (1.0 - fraction) * samples)

    def note(self, report: WindowReport, has_moved: bool) -> None:
        """Remember a window; one whose fraction *has_moved* does not change the level."""
        if report.requests == 0:
            return
        self._recent.append(_tally(report))
        if not has_moved:
            self._level = self._level.plus(_tally(report))

    def settle(self) -> None:
        """Begin a new level with the last windows."""
        self._level = _Tally()
        for tally in self._recent:
            self._level = self._level.plus(tally)


def strain(demand_s: float, capacity_s: float, thresholds: Thresholds) -> Condition | None:
    """Return what demand asks for against the capacity; without a worker there is nothing to move."""
    if capacity_s <= 0.0:
        return None
    if demand_s > thresholds.upper * capacity_s:
        text = f"demand {demand_s:.2f} s is above {thresholds.upper:g} x {capacity_s:.2f} s of capacity"
        return Condition("capacity", "split", text)
    if demand_s < thresholds.lower * capacity_s:
        text = f"demand {demand_s:.2f} s is below {thresholds.lower:g} x {capacity_s:.2f} s of capacity"
        return Condition("capacity", "merge", text)
    return None


def mix_change(report: WindowReport, stable: StableMix, thresholds: Thresholds) -> Condition | None:
    """Return what a long fraction off its stable level asks for.

    It has to be off by more than ``long_change`` and by more than chance: 52 requests of which 30 %
    are long (20 s at 2.6 requests/s) differ by more than 0.05 in two windows of five.
    """
    change = stable.change(report)
    if change is None or abs(change) <= max(thresholds.long_change, CHANCE * stable.noise(report)):
        return None
    text = f"the long fraction went from {stable.fraction:.1%} to {report.long_fraction:.1%}"
    return Condition("mix", "merge" if change > 0.0 else "split", text)


def _tally(report: WindowReport) -> _Tally:
    return _Tally(report.counted_long, report.counted, report.requests)
