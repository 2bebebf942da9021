"""Which request continues which, found after lengths and times are drawn.

Lengths drawn first keep the marginal distributions that a trace is known by; growing sessions turn by
turn would bend them.
"""

from bisect import bisect_right, insort
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vertumnus.domain.units import Tokens
from vertumnus.trace.drafts import NO_PARENT
from vertumnus.trace.sampling import Floats, Integers

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 600.0
"""A follow-up comes this long after the turn that it continues [s]."""


class _Turn(NamedTuple):
    context: Tokens
    """Prompt and answer: what a follow-up repeats."""
    place: int


def parents(
    at_s: Floats,
    input_tokens: Integers,
    output_tokens: Integers,
    message_tokens: Integers,
    is_follow_up: NDArray[np.bool_],
) -> Integers:
    """Return for each request the place of the turn that it continues, or NO_PARENT.

    Requests ascend in *at_s*. A follow-up takes the longest turn, each at most once, whose prompt, answer
    and the new message still fit its length; where no turn fits it stays without a parent.
    """
    found = np.full(len(at_s), NO_PARENT)
    open_turns = _OpenTurns()
    room = (input_tokens - message_tokens).tolist()
    contexts = (input_tokens + output_tokens).tolist()
    follows = is_follow_up.tolist()
    for place, now_s in enumerate(at_s.tolist()):
        open_turns.advance(now_s)
        if follows[place]:
            found[place] = open_turns.take(room[place])
        open_turns.add(now_s, _Turn(contexts[place], place))
    return found


class _OpenTurns:
    """The turns that a follow-up may continue now, ascending in context."""

    def __init__(self) -> None:
        self._coming: deque[tuple[float, _Turn]] = deque()
        self._leaving: deque[tuple[float, _Turn]] = deque()
        self._open: list[_Turn] = []

    def add(self, now_s: float, turn: _Turn) -> None:
        """Offer *turn*, which came at *now_s*, after the shortest pause."""
        self._coming.append((now_s + SHORTEST_PAUSE_S, turn))

    def advance(self, now_s: float) -> None:
        """Open the turns whose shortest pause is over, close those whose longest one is."""
        while self._coming and self._coming[0][0] <= now_s:
            opens_s, turn = self._coming.popleft()
            insort(self._open, turn)
            self._leaving.append((opens_s - SHORTEST_PAUSE_S + LONGEST_PAUSE_S, turn))
        while self._leaving and self._leaving[0][0] <= now_s:
            self._close(self._leaving.popleft()[1])

    def take(self, room: Tokens) -> int:
        """Close the longest turn of at most *room* tokens and return its place, or NO_PARENT."""
        fitting = bisect_right(self._open, room, key=lambda turn: turn.context)
        return self._open.pop(fitting - 1).place if fitting else NO_PARENT

    def _close(self, turn: _Turn) -> None:
        place = bisect_right(self._open, turn) - 1
        if place >= 0 and self._open[place] == turn:  # else a follow-up has taken it
            del self._open[place]
