"""The windows since demand last changed: what the near future will be like, and what it will not."""

from collections import deque
from collections.abc import Collection
from math import sqrt

CHANGE_SIGMAS = 4.0
"""A window's arrivals differ from those before by more standard deviations than this: demand has changed."""


class Past:
    """Arrivals of the last windows, back to the last change of demand."""

    def __init__(self, most: int) -> None:
        """Reach back *most* windows, >= 1."""
        self._arrivals: deque[int] = deque(maxlen=most)
        """Requests of each window, the latest first."""

    def reach(self, most: int) -> None:
        """Reach back *most* windows from now on."""
        self._arrivals = deque(self._arrivals, maxlen=most)  # a deque drops its right end, the oldest

    def note(self, requests: int) -> bool:
        """Take a window that has ended; return whether demand has changed, which forgets what came before."""
        changed = bool(self._arrivals) and differs(requests, self._arrivals)
        if changed:
            self._arrivals.clear()
        self._arrivals.appendleft(requests)
        return changed

    def windows_of(self, requests: int) -> int:
        """Return how many of the last windows bring *requests* requests; all when they do not."""
        total = 0
        for windows, arrived in enumerate(self._arrivals, 1):
            total += arrived
            if total >= requests:
                return windows
        return len(self._arrivals)


def differs(latest: int, before: Collection[int]) -> bool:
    """Return whether *latest* arrivals are more or fewer than chance makes of the rate of those *before*.

    Counts of Poisson arrivals vary by their own size; the mean of n windows by an n-th of it.
    """
    mean = sum(before) / len(before)
    return abs(latest - mean) > CHANGE_SIGMAS * sqrt(max(latest, mean) + mean / len(before))
