"""A run in numbers (sec. 3.3, 9.1): latencies, attainment, hit rate, throughput.

Everything but the counts is over the measured part, the arrivals after the warm-up. Latencies are
of finished requests; the ``_all`` percentiles take every other request as infinitely late and are
None where that is what they would say. Percentiles interpolate linearly, like numpy's default and
DuckDB's quantile_cont. Attainment and hit rate weigh requests by input tokens.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from vertumnus.domain.units import SECOND, Nanoseconds, Tokens, to_seconds
from vertumnus.records.config import Measurement
from vertumnus.records.lower_bound import LowerBound
from vertumnus.records.request_record import RequestRecord


class Bucket(NamedTuple):
    """Attainment of the prompts of one range of lengths."""

    name: str
    requests: int
    input_tokens: Tokens
    met_tokens: Tokens
    slo_attainment: float | None


class Metrics(Struct, frozen=True, kw_only=True):
    """One run's numbers; the fields but ``buckets`` are columns of the runs table."""

    requests: int
    """Every request that arrived, the warm-up included; the counts by status add up to it."""
    warmup_requests: int
    measured_requests: int
    finished: int
    failed: int
    rejected: int
    cancelled: int
    interrupted: int
    ttft_mean_s: float | None
    ttft_p50_s: float | None
    ttft_p90_s: float | None
    ttft_p99_s: float | None
    ttft_all_p50_s: float | None
    ttft_all_p90_s: float | None
    ttft_all_p99_s: float | None
    ttft_bound_mean_s: float | None
    """Mean lower bound of the finished measured requests; None where the content of one is unknown."""
    ttft_bound_p90_s: float | None
    ttft_over_bound: float | None
    """ttft_mean_s as a multiple of ttft_bound_mean_s."""
    queue_mean_s: float | None
    cache_wait_mean_s: float | None
    prefill_mean_s: float | None
    ext_mean_s: float | None
    tpot_mean_s: float | None
    slo_attainment: float | None
    """Input tokens of requests within their TTFT target / of all requests with a target."""
    tpot_attainment: float | None
    hit_rate: float | None
    """Cached / input tokens of prefilled requests whose content is known."""
    oracle_hit_rate: float | None
    """The same with an unlimited cache that every worker shares."""
    requests_per_s: float | None
    """Finished requests over measured_s."""
    input_tokens_per_s: float | None
    measured_s: float | None
    """From the first measured arrival to the last end."""
    served_requests_per_s: float | None
    """Finished requests over served_s: the time that the last answers took to decode does not count."""
    served_input_tokens_per_s: float | None
    served_s: float | None
    """From the first measured arrival to the last first token."""
    send_lag_p99_s: float | None
    """None in simulated time."""
    input_tokens: Tokens
    """Of all prefilled requests, the warm-up included."""
    cached_tokens: Tokens
    buckets: tuple[Bucket, ...]


def summarise(
    records: Sequence[RequestRecord], config: Measurement, bound: LowerBound | None = None
) -> Metrics:
    """Return the numbers of a run from its *records*, which are in order of arrival.

    Without *bound* nothing is told as a multiple of it.
    """
    warmup = config.warmup_requests(len(records))
    measured = records[warmup:]
    finished = [record for record in measured if record.status == "finished"]
    prefilled = [record for record in records if record.cached_tokens is not None]
    ttfts = sorted(record.ttft_ns for record in finished if record.ttft_ns is not None)
    known = [r for r in measured if r.cached_tokens is not None and r.oracle_cached_tokens is not None]
    bounds = _bounds(finished, bound)
    bound_mean_s = _mean_s(bounds)
    lags = sorted(record.send_lag_ns for record in measured if record.send_lag_ns is not None)
    first = min((r.arrival_ns for r in measured), default=0)
    span = max((r.t_ns for r in measured), default=first) - first
    tokens_at = (r.arrival_ns + r.ttft_ns for r in finished if r.ttft_ns is not None)
    served = max(tokens_at, default=first) - first
    return Metrics(
        requests=len(records),
        warmup_requests=warmup,
        measured_requests=len(measured),
        finished=_count(records, "finished"),
        failed=_count(records, "failed"),
        rejected=_count(records, "rejected"),
        cancelled=_count(records, "cancelled"),
        interrupted=_count(records, "interrupted"),
        ttft_mean_s=_mean_s(ttfts),
        ttft_p50_s=percentile_s(ttfts, 50),
        ttft_p90_s=percentile_s(ttfts, 90),
        ttft_p99_s=percentile_s(ttfts, 99),
        ttft_all_p50_s=percentile_s(ttfts, 50, of=len(measured)),
        ttft_all_p90_s=percentile_s(ttfts, 90, of=len(measured)),
        ttft_all_p99_s=percentile_s(ttfts, 99, of=len(measured)),
        ttft_bound_mean_s=bound_mean_s,
        ttft_bound_p90_s=percentile_s(bounds, 90),
        ttft_over_bound=_multiple(_mean_s(ttfts), bound_mean_s),
        queue_mean_s=_mean_s(r.queue_ns for r in finished),
        cache_wait_mean_s=_mean_s(r.cache_wait_ns for r in finished),
        prefill_mean_s=_mean_s(r.prefill_ns for r in finished),
        ext_mean_s=_mean_s(r.ext_ns for r in finished),
        tpot_mean_s=_mean_s(r.tpot_ns for r in finished),
        slo_attainment=_attainment(measured, lambda r: r.slo_met),
        tpot_attainment=_attainment(measured, lambda r: r.tpot_met),
        hit_rate=_share(_sum(r.cached_tokens for r in known), _sum(r.input_tokens for r in known)),
        oracle_hit_rate=_share(
            _sum(r.oracle_cached_tokens for r in known), _sum(r.input_tokens for r in known)
        ),
        requests_per_s=_rate(len(finished), span),
        input_tokens_per_s=_rate(_sum(r.input_tokens for r in finished), span),
        measured_s=to_seconds(span) if span > 0 else None,
        served_requests_per_s=_rate(len(finished), served),
        served_input_tokens_per_s=_rate(_sum(r.input_tokens for r in finished), served),
        served_s=to_seconds(served) if served > 0 else None,
        send_lag_p99_s=percentile_s(lags, 99),
        input_tokens=_sum(r.input_tokens for r in prefilled),
        cached_tokens=_sum(r.cached_tokens for r in prefilled),
        buckets=_buckets(measured, config),
    )


def percentile_s(ascending: Sequence[Nanoseconds], percent: int, of: int | None = None) -> float | None:
    """Return the percentile of *ascending* by linear interpolation [s]; None when there is none.

    With *of*, the sample has that many members and those that *ascending* lacks are infinite; a
    percentile that falls on one of them is None.
    """
    count = len(ascending) if of is None else of
    if count == 0:
        return None
    lower, hundredths = divmod((count - 1) * percent, 100)
    upper = lower + (hundredths > 0)
    if upper >= len(ascending):
        return None
    between = (ascending[upper] - ascending[lower]) * hundredths / 100
    return (ascending[lower] + between) / SECOND


def _bounds(records: Iterable[RequestRecord], bound: LowerBound | None) -> list[Nanoseconds]:
    """Return the bounds of *records*, ascending; none when one of them is not known."""
    bounds = [] if bound is None else [bound.ttft(record) for record in records]
    known = sorted(least for least in bounds if least is not None)
    return known if len(known) == len(bounds) else []


def _multiple(of: float | None, unit: float | None) -> float | None:
    return of / unit if of is not None and unit else None


def _count(records: Iterable[RequestRecord], status: str) -> int:
    return sum(record.status == status for record in records)


def _sum(values: Iterable[int | None]) -> int:
    return sum(value for value in values if value is not None)


def _mean_s(values: Iterable[Nanoseconds | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) / SECOND if present else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _rate(amount: int, span: Nanoseconds) -> float | None:
    return amount * SECOND / span if span > 0 else None


def _attainment(
    records: Iterable[RequestRecord], met: Callable[[RequestRecord], bool | None]
) -> float | None:
    judged = [record for record in records if met(record) is not None]
    return _share(_sum(r.input_tokens for r in judged if met(r)), _sum(r.input_tokens for r in judged))


def _buckets(records: Iterable[RequestRecord], config: Measurement) -> tuple[Bucket, ...]:
    """Return the buckets that have requests, by length."""
    members: dict[str, list[RequestRecord]] = {}
    for record in sorted(records, key=lambda record: record.input_tokens):
        members.setdefault(config.length_bucket(record.input_tokens), []).append(record)
    return tuple(
        Bucket(
            name,
            len(bucket),
            _sum(r.input_tokens for r in bucket),
            _sum(r.input_tokens for r in bucket if r.slo_met),
            _attainment(bucket, lambda r: r.slo_met),
        )
        for name, bucket in members.items()
    )
