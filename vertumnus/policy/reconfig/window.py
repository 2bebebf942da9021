"""D(k) and the long-request fraction of consecutive windows of length H (sec. 6.1).

A request belongs to the window in which it was first routed, at the degree, R, P and predicted time of
that placement; what its step finds in the cache later, or a redirect, changes nothing.
"""

from msgspec import Struct

from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.policy.reconfig.config import LongFractionBy
from vertumnus.policy.reconfig.sizes import SizeClass, SizeHistogram


class WindowReport(Struct, frozen=True, kw_only=True):
    """What arrived in one window."""

    index: int
    """k, from 0."""
    start_ns: Nanoseconds
    end_ns: Nanoseconds
    requests: int
    demand_ns: Nanoseconds
    """D(k): predicted time of the requests at the degree that each was routed to [ns]."""
    demand_by_degree_ns: dict[int, Nanoseconds]
    """D(k) by that degree; degrees without a request are absent [ns]."""
    counted: int
    """Requests, or their input tokens, that the long fraction is a share of."""
    counted_long: int
    """Those of long requests."""
    sizes: tuple[SizeClass, ...]
    """(R, P) of the requests, for predicting them on another composition."""

    @property
    def span_ns(self) -> Nanoseconds:
        """H of this window [ns]."""
        return self.end_ns - self.start_ns

    @property
    def long_fraction(self) -> float | None:
        """The share of long requests; None when nothing arrived."""
        return self.counted_long / self.counted if self.counted else None


class DemandWindow:
    """Collects the current window; windows are consecutive and do not overlap."""

    def __init__(
        self, start_ns: Nanoseconds, long_tokens: Tokens, long_fraction_by: LongFractionBy = "requests"
    ) -> None:
        """Open window 0 at *start_ns*; a prompt of *long_tokens* as served or more is long."""
        self._long_tokens = long_tokens
        self._by_tokens = long_fraction_by == "tokens"
        self._open(0, start_ns)

    def add(self, degree: int, uncached: Tokens, cached: Tokens, service_ns: Nanoseconds) -> None:
        """Count a request when it is first routed: to *degree*, with R, P and E_C(R, P) as predicted."""
        input_tokens = uncached + cached
        amount = input_tokens if self._by_tokens else 1
        self._requests += 1
        self._counted += amount
        if input_tokens >= self._long_tokens:
            self._counted_long += amount
        self._demand_ns[degree] = self._demand_ns.get(degree, 0) + service_ns
        self._sizes.add(uncached, cached)

    def close(self, due_ns: Nanoseconds) -> WindowReport:
        """Return what arrived since the window opened, and open the next one at *due_ns*."""
        report = WindowReport(
            index=self._index,
            start_ns=self._start_ns,
            end_ns=due_ns,
            requests=self._requests,
            demand_ns=sum(self._demand_ns.values()),
            demand_by_degree_ns=dict(sorted(self._demand_ns.items())),
            counted=self._counted,
            counted_long=self._counted_long,
            sizes=self._sizes.classes(),
        )
        self._open(self._index + 1, due_ns)
        return report

    def _open(self, index: int, start_ns: Nanoseconds) -> None:
        self._index = index
        self._start_ns = start_ns
        self._requests = 0
        self._counted = 0
        self._counted_long = 0
        self._demand_ns: dict[int, Nanoseconds] = {}
        self._sizes = SizeHistogram()
