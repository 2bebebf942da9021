"""How long the runs of the figures will still take, told from what such runs took before."""

from collections.abc import Callable, Collection, Mapping
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
        executed: Collection[str] = (),
        is_whole: bool,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """*runs* are how many runs of each experiment there are to do, and how many at a time.

        Those *executed* take their time on any machine; the others go by the pace of those before. Unless
        each *is_whole*, as its experiment declares it, nothing is known before a simulated sweep has ended.
        """
        self._expected = {
            name: JOB_S.get(name, OTHERS_S) * count / places for name, (count, places) in runs.items()
        }
        self._executed = frozenset(executed)
        self._is_whole = is_whole
        self._clock = clock
        self._since = clock()
        self._took_s = self._expected_s = 0.0

    def ended(self, experiment: str) -> None:
        """Note that the sweep of *experiment*, which began when the one before ended, is through."""
        took_s, expected_s = self._clock() - self._since, self._expected.pop(experiment)
        self._since += took_s
        if experiment not in self._executed:
            self._took_s += took_s
            self._expected_s += expected_s

    def seconds(self) -> float | None:
        """Return the time left [s] at the pace so far, at first the measured one; None if it is not known."""
        if not self._is_whole and not self._expected_s:
            return None
        pace = self._took_s / self._expected_s if self._expected_s else 1.0
        return sum(
            seconds if name in self._executed else pace * seconds for name, seconds in self._expected.items()
        )


def time_text(seconds: float | None) -> str:
    """Return *seconds* as the end of a line about what is to come."""
    if seconds is None:
        return ""
    left = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
    return f"; about {left} left in all"
