"""The feed's thread: when it makes a snapshot, how long it waits for the next."""

import pytest

from vertumnus_console import feed as feed_module
from vertumnus_console.feed import Feed


class Clock:
    """Time that passes when somebody works."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Working:
    """A player and a desk of a live run, for whom a turn takes as long as told."""

    is_live, is_at_rest, state = True, False, None

    def __init__(self, clock: Clock, turns: list[float]) -> None:
        self._clock, self._turns, self.snapshots = clock, turns, list[float]()

    def turn(self, *now: object) -> bool:
        if len(now) == 1:  # the player's
            self._clock.now += self._turns.pop(0)
        return False

    def snapshot(self) -> None:
        self.snapshots.append(self._clock.now)


def test_work_does_not_make_pictures_rarer(monkeypatch: pytest.MonkeyPatch) -> None:
    """After turns of 50, 150 and 300 ms it waits for 150, 50 and 0 ms: a picture each 200 ms if it can be."""
    clock = Clock()
    working, waits = Working(clock, [0.05, 0.15, 0.3]), list[float]()

    def obey(self: Feed, wait_s: float) -> bool:
        waits.append(wait_s)
        clock.now += wait_s
        return len(waits) < 3

    monkeypatch.setattr(feed_module, "monotonic", clock)
    monkeypatch.setattr(Feed, "_obey", obey)
    Feed(working, working)._follow()  # type: ignore[arg-type]
    assert waits == pytest.approx([0.15, 0.05, 0.0])
    assert working.snapshots == pytest.approx([100.05, 100.35, 100.7])
