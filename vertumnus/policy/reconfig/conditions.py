"""What a single window shows: demand outside its band, or a long fraction off its stable level (sec. 6.2)."""

from collections import deque
from typing import Literal, NamedTuple, TypeAlias

from vertumnus.policy.reconfig.config import Thresholds
from vertumnus.policy.reconfig.moves import Direction
from vertumnus.policy.reconfig.window import WindowReport

Cause: TypeAlias = Literal["capacity", "mix"]


class Condition(NamedTuple):
    """What one rule asks for in one window."""

    cause: Cause
    direction: Direction
    text: str
    """The rule with its numbers."""


class StableMix:
    """The long fraction that the composition was chosen for.

    It is pooled over the windows since the last transition in which it had not moved, begun with the
    last few windows before that transition; at the start, with the first few windows, until which there
    is nothing to compare with. Windows without arrivals say nothing.
    """

    def __init__(self, windows: int) -> None:
        """Take the number of windows that make a level."""
        self._recent: deque[tuple[int, int]] = deque(maxlen=windows)
        self._windows = windows
        self._long, self._counted = 0, 0

    @property
    def fraction(self) -> float | None:
        """The stable long fraction so far; None before the first arrival."""
        return self._long / self._counted if self._counted else None

    @property
    def is_settled(self) -> bool:
        """Whether enough windows had arrivals to compare others with them."""
        return len(self._recent) == self._windows

    def note(self, report: WindowReport, has_moved: bool) -> None:
        """Remember a window; one whose fraction *has_moved* does not change the level."""
        if report.counted == 0:
            return
        self._recent.append((report.counted_long, report.counted))
        if not has_moved:
            self._long += report.counted_long
            self._counted += report.counted

    def settle(self) -> None:
        """Begin a new level with the last windows."""
        self._long = sum(long for long, _ in self._recent)
        self._counted = sum(counted for _, counted in self._recent)


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


def mix_change(long_fraction: float | None, stable: StableMix, thresholds: Thresholds) -> Condition | None:
    """Return what a long fraction off its stable level asks for."""
    level = stable.fraction
    if long_fraction is None or level is None or not stable.is_settled:
        return None
    if abs(long_fraction - level) <= thresholds.long_change:
        return None
    text = f"the long fraction went from {level:.1%} to {long_fraction:.1%}"
    return Condition("mix", "merge" if long_fraction > level else "split", text)
