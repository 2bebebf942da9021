"""Running totals of a run's requests, kept record by record so that a look costs no pass over the run.

All requests count, the warm-up too: the console shows what happens, the report what is measured.
"""

from bisect import bisect_left, insort
from collections import Counter
from typing import NamedTuple

from msgspec import Struct, field

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import RequestArrived, RequestEnded
from vertumnus.domain.units import SECOND, Nanoseconds, RequestId, Tokens
from vertumnus.records.metrics import percentile_s
from vertumnus.records.request_record import Ending, RequestRecord
from vertumnus.records.timeline import Handlers, Timeline
from vertumnus_console.series import Series

RECENT_NS: Nanoseconds = 60 * SECOND
"""Width of the window that "recent" means."""


class Unserved(NamedTuple):
    """A request that got no answer."""

    t_ns: Nanoseconds
    request_id: RequestId
    status: Ending
    reason: str | None


class Service(Struct, frozen=True):
    """What the requests that ended in some span got."""

    requests: int
    ttft_mean_s: float | None
    """Of finished requests, like the percentiles."""
    ttft_p50_s: float | None
    ttft_p90_s: float | None
    attainment: float | None
    """Input tokens of requests within their TTFT target / of all requests with a target."""


class Totals:
    """Fold of inputs, facts and orders, in the order in which they were told."""

    def __init__(self, block_tokens: Tokens, *, live: bool) -> None:
        self.ended: Counter[Ending] = Counter()
        """Requests by how they ended."""
        self._timeline = Timeline(block_tokens, live=live)
        self._arrivals: list[Nanoseconds] = []
        self.unserved: list[Unserved] = []
        """Requests that failed or were rejected, in order."""
        self.series = Series()
        self._whole = _Tally()
        self._hits: dict[CpGroup, _Hits] = {}
        self._folded = 0
        own: Handlers = {RequestArrived: self._arrived, RequestEnded: self._ended}  # after the timeline
        self.tables: tuple[Handlers, ...] = (self._timeline.handlers, own)
        """Handlers of records, to be called in this order."""

    @property
    def arrived(self) -> int:
        """Requests that have arrived."""
        return len(self._arrivals)

    def arrival_rate(self, now: Nanoseconds) -> float | None:
        """Return the arrivals of the last minute by its length [req/s]; None in the run's first second."""
        span = min(now, RECENT_NS)
        if span < SECOND:
            return None
        return (len(self._arrivals) - bisect_left(self._arrivals, now - span)) * SECOND / span

    def hit_rate(self, worker: CpGroup) -> float | None:
        """Return cached / input tokens of what *worker* prefilled and whose content is known."""
        hits = self._hits.get(worker)
        return None if hits is None else hits.cached_tokens / hits.input_tokens

    def whole(self) -> Service:
        """Return what all requests that ended so far got."""
        return self._whole.service()

    def recent(self, now: Nanoseconds, span: Nanoseconds = RECENT_NS) -> Service:
        """Return what the requests that ended in the last *span* before *now* got."""
        records = self._timeline.records
        tally = _Tally()
        for record in records[bisect_left(records, now - span, key=lambda record: record.t_ns) :]:
            tally.add(record)
        return tally.service()

    def _arrived(self, fact: RequestArrived) -> None:
        self._arrivals.append(fact.at)

    def _ended(self, fact: RequestEnded) -> None:
        for record in self._timeline.records[self._folded :]:
            self._add(record)

    def _add(self, record: RequestRecord) -> None:
        self._folded += 1
        self.ended[record.status] += 1
        self._whole.add(record)
        if record.status in ("failed", "rejected"):
            self.unserved.append(Unserved(record.t_ns, record.request_id, record.status, record.reason))
        if record.status == "finished" and record.ttft_ns is not None:
            self.series.add(record.t_ns, record.ttft_ns)
        if record.worker is not None and record.oracle_cached_tokens is not None:
            self._hits.setdefault(record.worker, _Hits()).add(record)


class _Hits(Struct):
    input_tokens: Tokens = 0
    cached_tokens: Tokens = 0

    def add(self, record: RequestRecord) -> None:
        if record.cached_tokens is not None:
            self.input_tokens += record.input_tokens
            self.cached_tokens += record.cached_tokens


class _Tally(Struct):
    requests: int = 0
    ttfts: list[Nanoseconds] = field(default_factory=list)
    """Ascending."""
    ttft_sum: Nanoseconds = 0
    targeted_tokens: Tokens = 0
    met_tokens: Tokens = 0

    def add(self, record: RequestRecord) -> None:
        self.requests += 1
        if record.status == "finished" and record.ttft_ns is not None:
            insort(self.ttfts, record.ttft_ns)
            self.ttft_sum += record.ttft_ns
        if record.slo_met is not None:
            self.targeted_tokens += record.input_tokens
            self.met_tokens += record.input_tokens if record.slo_met else 0

    def service(self) -> Service:
        return Service(
            requests=self.requests,
            ttft_mean_s=self.ttft_sum / len(self.ttfts) / SECOND if self.ttfts else None,
            ttft_p50_s=percentile_s(self.ttfts, 50),
            ttft_p90_s=percentile_s(self.ttfts, 90),
            attainment=self.met_tokens / self.targeted_tokens if self.targeted_tokens else None,
        )
