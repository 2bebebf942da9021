"""What forecast after forecast says for splits and for merges (a cumulative sum of their gains).

One forecast is a sample: two spans of the same load may differ by 10 % in what a move seems to save. So
gains add up, and losses take away, never below 0: a large gain acts at once, a small one when it has shown
often enough, and chance cancels itself.
"""

from collections.abc import Mapping
from typing import NamedTuple

from vertumnus.domain.move import Direction, Move

DIRECTIONS: tuple[Direction, Direction] = ("split", "merge")


class Gain(NamedTuple):
    """The best move of a kind against staying."""

    move: Move
    share: float
    """Of staying's mean TTFT that it saves; below 0 when it costs."""


class Shown(NamedTuple):
    """What speaks for a kind of move."""

    gain: float
    """Sum of the shares saved since it was last 0."""
    windows: int
    """Windows in a row, up to the last one, in which it would have saved something."""


NOTHING = Shown(0.0, 0)


class Evidence:
    """Sums of gains, for splits and for merges."""

    def __init__(self) -> None:
        self._shown: dict[Direction, Shown] = {}

    def add(self, gains: Mapping[Direction, Gain]) -> None:
        """Take one forecast; a kind of move without a gain there starts anew."""
        before = self._shown
        self._shown = {
            direction: _after(before.get(direction, NOTHING), gains[direction].share)
            for direction in DIRECTIONS
            if direction in gains
        }

    def forget(self) -> None:
        """Start anew: the composition is another one, or something was missed."""
        self._shown = {}

    def leading(self) -> Direction | None:
        """Return the kind of move that the last forecast and the most evidence speak for; None if neither."""
        paying = [direction for direction in DIRECTIONS if self.of(direction).windows]
        return max(paying, key=lambda direction: self.of(direction).gain, default=None)

    def of(self, direction: Direction | None) -> Shown:
        """Return what speaks for moves of *direction*."""
        return NOTHING if direction is None else self._shown.get(direction, NOTHING)


def _after(before: Shown, share: float) -> Shown:
    return Shown(max(0.0, before.gain + share), before.windows + 1 if share > 0.0 else 0)
