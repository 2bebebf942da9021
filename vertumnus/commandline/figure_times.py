"""How long the runs of the figures will still take, told from what such runs took before."""

from collections.abc import Callable, Mapping
from time import monotonic

JOB_S: Mapping[str, float] = {
    "prefill_times_live": 85.0,
    "workloads": 10.0,
    "deadlines": 13.5,
    "prefill_times": 2.0,
    "production_day": 44.0,
    "routing_grid": 4.7,
    "reconfigure": 36.0,
    "cache_ablation": 7.2,
}
"""What a run of each experiment takes in the mean [s]: a core's time, wall time of executed ones.

Measured on two cores of 2.1 GHz; only the time left is told from it, and the pace of the sweeps that have
ended corrects it.
"""
OTHERS_S = 10.0
"""Of experiments that are not listed [s]."""


class TimeLeft:
    """The time that sweeps take, one after the other."""

    def __init__(
        self,
        runs: Mapping[str, tuple[int, int]],
        *,
        is_whole: bool,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """*runs* are how many runs of each experiment there are to do, and how many at a time.

        Unless each *is_whole*, as its experiment declares it, nothing is known before a sweep has ended.
        """
        self._expected = {
            name: JOB_S.get(name, OTHERS_S) * count / places for name, (count, places) in runs.items()
        }
        self._is_whole = is_whole
        self._clock = clock
        self._began = clock()
        self._done_s = 0.0

    def ended(self, experiment: str) -> None:
        """Note that the sweep of *experiment* is through."""
        self._done_s += self._expected.pop(experiment)

    def seconds(self) -> float | None:
        """Return the time left [s] at the pace of the sweeps that have ended; None while it is not known."""
        if self._done_s:
            pace = (self._clock() - self._began) / self._done_s
            return pace * sum(self._expected.values())
        return sum(self._expected.values()) if self._is_whole else None


def time_text(seconds: float | None) -> str:
    """Return *seconds* as the end of a line about what is to come."""
    if seconds is None:
        return ""
    left = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
    return f"; about {left} left in all"
