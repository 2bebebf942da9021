"""The highest rate at which a pool still meets its targets, by bisection."""

from collections.abc import Callable
from math import inf, sqrt

STEP = 1.25
"""Factor to the second rate that is tried; each further one is its square, until one is met and one not."""
TOLERANCE = 1.06
"""The search ends when the lowest rate that fails is within this factor of the highest that is met."""
REACH = 100.0
"""Rates are looked for within this factor of the first guess, up and down."""


def highest_rate(meets: Callable[[float], bool], guess: float) -> float | None:
    """Return the highest rate found that *meets*, which low rates do and high ones do not.

    It is at most TOLERANCE too low, or *guess* times REACH. None when not even *guess* / REACH is met.
    """
    lowest, highest = guess / REACH, guess * REACH
    met, failed, rate, step = 0.0, inf, guess, STEP
    while met < highest and failed > lowest and failed > met * TOLERANCE:
        if meets(rate):
            met = rate
        else:
            failed = rate
        if met and failed < inf:
            rate = sqrt(met * failed)
        else:
            rate, step = (min(rate * step, highest) if met else max(rate / step, lowest)), step**2
    return met or None
