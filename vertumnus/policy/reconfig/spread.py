"""The same requests on another composition: what each degree would carry, and how full it would be.

Seconds at degree 2 and at degree 4 are not the same currency, so requests are predicted anew (sec. 6.1).
The paper leaves open at which degree. We spread them as a router does that balances load: those that
gain most from parallelism, E_min / E_max over the degrees present, go to the largest degree until it is
as full as the others, the next to the next smaller one, and the rest to the smallest. With two degrees
this is the least possible utilisation; the least unloaded cost alone would send nearly everything to the
large workers, however few they are, and call that enough.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from vertumnus.domain.cluster import Composition
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.reconfig.capacity import Capacity
from vertumnus.policy.reconfig.sizes import SizeClass

HALVINGS = 40
"""Steps of the search for the utilisation; what is left is 1e-12 of the first guess."""


class Spread(NamedTuple):
    """Predicted demand on one composition."""

    demand_by_degree_ns: dict[int, Nanoseconds]
    """Predicted time of the requests that each degree present would serve, ascending by degree [ns]."""
    utilisation: float
    """The fullest degree's share of its capacity; above 1 the composition does not carry the demand."""

    @property
    def demand_ns(self) -> Nanoseconds:
        """D re-predicted on the composition [ns]."""
        return sum(self.demand_by_degree_ns.values())


def spread(
    sizes: Sequence[SizeClass],
    span_ns: Nanoseconds,
    composition: Composition,
    capacity: Capacity,
    prefill_time: PrefillTimeModel,
) -> Spread:
    """Predict requests of *sizes*, arriving within *span_ns*, on the workers of *composition*.

    P is taken as it was routed. A composition without workers carries nothing: utilisation is infinite
    unless nothing arrived. Raises ConfigError when kappa is missing for a degree present.
    """
    room = capacity.room(composition, span_ns)
    if not sizes:
        return Spread(dict.fromkeys(room, 0), 0.0)
    if not room:
        return Spread({}, float("inf"))
    work = _cumulative_work(sizes, tuple(room), prefill_time)
    utilisation = _least_utilisation(work, room)
    filled = _fill(work, room, utilisation)
    return Spread({degree: round(filled[degree]) for degree in room}, utilisation)


_Work = Mapping[int, Sequence[Nanoseconds]]
"""By degree: predicted time of the first i classes in the order of their gain, i = 0..n [ns]."""


def _cumulative_work(sizes: Sequence[SizeClass], degrees: Sequence[int], model: PrefillTimeModel) -> _Work:
    least, most = min(degrees), max(degrees)

    def gain(size: SizeClass) -> tuple[float, SizeClass]:
        _, uncached, cached = size
        slow, fast = model.predict(least, uncached, cached), model.predict(most, uncached, cached)
        return -slow / max(1, fast), size

    ordered = sorted(sizes, key=gain)
    return {
        degree: list(accumulate((n * model.predict(degree, r, p) for n, r, p in ordered), initial=0))
        for degree in degrees
    }


def _least_utilisation(work: _Work, room: Mapping[int, float]) -> float:
    smallest = min(room)
    low, high = 0.0, min(work[degree][-1] / room[degree] for degree in room)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _fill(work, room, middle)[smallest] <= middle * room[smallest]:
            high = middle
        else:
            low = middle
    return high


def _fill(work: _Work, room: Mapping[int, float], utilisation: float) -> dict[int, float]:
    """Return each degree's demand when all but the smallest are filled up to *utilisation*, largest first."""
    place, filled = 0.0, {}
    *upper, smallest = sorted(room, reverse=True)
    for degree in upper:
        begin = _value_at(work[degree], place)
        place = max(place, _place_of(work[degree], begin + utilisation * room[degree]))
        filled[degree] = _value_at(work[degree], place) - begin
    filled[smallest] = work[smallest][-1] - _value_at(work[smallest], place)
    return filled


def _value_at(cumulative: Sequence[Nanoseconds], place: float) -> float:
    """Return the cumulative work at *place*, where a fraction is a part of one class's requests."""
    whole = int(place)
    if whole >= len(cumulative) - 1:
        return float(cumulative[-1])
    return cumulative[whole] + (place - whole) * (cumulative[whole + 1] - cumulative[whole])


def _place_of(cumulative: Sequence[Nanoseconds], value: float) -> float:
    """Return the place at which the cumulative work is *value*, at most the number of classes."""
    if value >= cumulative[-1]:
        return float(len(cumulative) - 1)
    whole = bisect_right(cumulative, value) - 1
    return whole + (value - cumulative[whole]) / (cumulative[whole + 1] - cumulative[whole])
