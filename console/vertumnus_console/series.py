"""TTFT percentiles and arrivals over the last minutes of a run, in slices of equal length."""

from bisect import insort

from vertumnus.domain.units import SECOND, Nanoseconds
from vertumnus.records.metrics import percentile_s

SLICES = 60
"""Slices that are kept: as many as an 80-column screen has room for."""
SLICE_NS: Nanoseconds = 5 * SECOND


class Series:
    """TTFTs by the slice in which the request ended, the newest `SLICES` of them."""

    def __init__(self) -> None:
        self._slices: dict[int, list[Nanoseconds]] = {}

    def add(self, at: Nanoseconds, ttft_ns: Nanoseconds) -> None:
        """Count a request that ended at *at*."""
        place = at // SLICE_NS
        if place not in self._slices:
            self._slices[place] = []
            for old in [each for each in self._slices if each <= place - SLICES]:
                del self._slices[old]
        insort(self._slices[place], ttft_ns)

    def percentile(self, now: Nanoseconds, percent: int) -> tuple[float | None, ...]:
        """Return the percentile of each slice up to *now*, oldest first [s]; None where nothing ended."""
        last = now // SLICE_NS
        first = max(0, last - SLICES + 1)
        return tuple(percentile_s(self._slices.get(place, ()), percent) for place in range(first, last + 1))
