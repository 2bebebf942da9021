"""Instants of a replay that can be gone back to without replaying from the start."""

import pickle
from bisect import bisect_left
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
    state: bytes
    """Pickled here and read here, never from a file or a socket."""


class Keyframes:
    """Keeps copies of a replay's state as it goes on."""

    def __init__(self) -> None:
        self._frames: list[Keyframe] = []
        self._next = FIRST_EVENTS

    def __len__(self) -> int:
        return len(self._frames)

    def is_due(self, events: int) -> bool:
        """Return whether a replay that took *events* events should keep its state now."""
        return events >= self._next

    def keep(self, at: Nanoseconds, events: int, state: object) -> None:
        """Keep *state*, that of a replay after *events* events, the last of them at *at*."""
        self._frames.append(Keyframe(at, pickle.dumps(state, pickle.HIGHEST_PROTOCOL)))
        self._next = int(events * GROWTH)

    def before(self, at: Nanoseconds) -> Any | None:
        """Return the latest state kept whose last event is before *at*; None when there is none."""
        place = bisect_left(self._frames, at, key=lambda frame: frame.at)
        return pickle.loads(self._frames[place - 1].state) if place else None
