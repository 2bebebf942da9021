"""Instants of a replay that can be gone back to without replaying from the start."""

import pickle
from bisect import bisect_left, bisect_right, insort
from typing import Any, NamedTuple

from vertumnus.domain.units import Nanoseconds

FIRST_EVENTS = 20_000
"""Events before the first keyframe: less is replayed in about a second anyway."""
GROWTH = 1.25
"""Each keyframe lies this many times as many events from the start as the one before it, so that their
number grows with the logarithm of a run's length."""


class Keyframe(NamedTuple):
    """The whole state of a replay between two events."""

    at: Nanoseconds
    """Of the last event that it includes."""
    events: int
    """Taken so far."""
    place: int
    """In the log, of what the state does not have yet."""
    state: bytes
    """Pickled by this code and for it (`shelf`)."""

    def load(self) -> Any:
        """Return the state, a copy of what was kept."""
        return pickle.loads(self.state)


def keyframe(at: Nanoseconds, events: int, place: int, state: object) -> Keyframe:
    """Return *state* after *events* events, the last of them at *at*, with the log read up to *place*."""
    return Keyframe(at, events, place, pickle.dumps(state, pickle.HIGHEST_PROTOCOL))


class Keyframes:
    """Copies of a replay's state, kept as it goes on."""

    def __init__(self) -> None:
        self._frames: list[Keyframe] = []
        """In the order of their instants."""

    def __len__(self) -> int:
        return len(self._frames)

    def is_due(self, events: int) -> bool:
        """Return whether a replay that took *events* events should keep its state now."""
        if events < FIRST_EVENTS:
            return False
        place = bisect_right(self._frames, events, key=lambda frame: frame.events)
        return place == 0 or events >= GROWTH * self._frames[place - 1].events

    def keep(self, frame: Keyframe) -> None:
        """Keep *frame*."""
        insort(self._frames, frame, key=lambda each: each.events)

    def before(self, at: Nanoseconds) -> Any | None:
        """Return the latest state kept whose last event is before *at*; None when there is none."""
        place = bisect_left(self._frames, at, key=lambda frame: frame.at)
        return self._frames[place - 1].load() if place else None
