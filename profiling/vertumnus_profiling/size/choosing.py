"""Which candidate is recommended: it meets the target with room to spare, and is the fastest of those."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vertumnus_profiling.size.judging import attained, ttft
from vertumnus_profiling.size.trials import Sized


class Candidate(NamedTuple):
    """A composition that stays as it is, under a policy."""

    policy_name: str
    policy: Mapping[str, Any]
    composition: Mapping[int, int]
    """Workers by degree."""

    def tree(self, tree: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plain tree of a config with this policy and composition."""
        cluster = {**tree["cluster"], "composition": dict(self.composition)}
        return {**tree, "policy": dict(self.policy), "cluster": cluster}

    @property
    def workers(self) -> str:
        """The composition in words: 4 x CP2 + 8 x CP4."""
        return " + ".join(
            f"{count} x CP{degree}" for degree, count in sorted(self.composition.items()) if count
        )


class Measured(NamedTuple):
    """A candidate and what it did with the first half."""

    candidate: Candidate
    sized: Sized

    @property
    def mean_ttft_s(self) -> float:
        """At the planned rate [s]."""
        return ttft(self.sized.requests).value

    @property
    def attainment(self) -> float:
        """At the planned rate, token-weighted."""
        return attained(self.sized.requests).value

    def fits(self, rate: float, target: float) -> bool:
        """Return whether it meets *target* as planned, and still does at *rate* [req/s]."""
        highest = self.sized.highest_rate
        return self.attainment >= target and highest is not None and highest >= rate


def recommended(measured: Sequence[Measured], rate: float, target: float) -> list[Measured]:
    """Return *measured* with the best first.

    Those that fit at *rate* and *target* come by mean TTFT; the others behind them by the highest rate
    that they carry, then by attainment.
    """

    def order(each: Measured) -> tuple[int, float, float]:
        if each.fits(rate, target):
            return 0, each.mean_ttft_s, 0.0
        return 1, -(each.sized.highest_rate or 0.0), -each.attainment

    return sorted(measured, key=order)
