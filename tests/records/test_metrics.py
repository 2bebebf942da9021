"""Percentiles as numpy's, attainment and hit rate by tokens, failures as infinitely late."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.builders import a_request
from tests.support.recorded import a_header, a_history, a_life
from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND
from vertumnus.records.config import Measurement, length_bucket
from vertumnus.records.folds import RunFolds
from vertumnus.records.metrics import percentile_s, summarise
from vertumnus.records.request_record import RequestRecord

ALL = Measurement(warmup_share=0.0, length_bounds=(64, 256))


def records_of(requests: list[Request], cached_tokens: int = 0) -> list[RequestRecord]:
    """Return finished records of *requests*."""
    folds = RunFolds(a_header())
    for request in requests:
        folds.apply(a_life(request, cached_tokens=cached_tokens))
    return folds.requests


def with_ttft(ttft_ns: int, status: str = "finished", **changes: object) -> RequestRecord:
    """Return a record that differs from a plain one in its TTFT and status."""
    (plain,) = records_of([a_request()])
    return replace(plain, ttft_ns=ttft_ns, status=status, **changes)


@settings(deadline=None)
@given(
    values=st.lists(st.integers(0, 10**12), min_size=1, max_size=50),
    percent=st.sampled_from([0, 50, 90, 99, 100]),
)
def test_percentiles_equal_numpys(values: list[int], percent: int) -> None:
    """Linear interpolation between ranks, as numpy does by default."""
    expected = np.percentile(np.array(values) / SECOND, percent)
    assert percentile_s(sorted(values), percent) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@settings(deadline=None)
@given(
    values=st.lists(st.integers(0, 10**12), max_size=30),
    late=st.integers(0, 5),
    percent=st.sampled_from([50, 90, 99]),
)
def test_failures_count_as_infinitely_late(values: list[int], late: int, percent: int) -> None:
    """With failures as infinity the percentile is numpy's, and None where that is infinite."""
    found = percentile_s(sorted(values), percent, of=len(values) + late)
    sample = sorted(values) + [10**30] * late
    if not sample:
        assert found is None
        return
    expected = np.percentile(np.array(sample, dtype=float) / SECOND, percent)
    if expected > 10**12 / SECOND:
        assert found is None
    else:
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_failures_do_not_flatter_the_latency() -> None:
    """Success-only and failure-inclusive percentiles differ as soon as a request fails."""
    records = [with_ttft(SECOND), with_ttft(3 * SECOND), with_ttft(9 * SECOND, "failed")]
    metrics = summarise(records, ALL)
    assert (metrics.ttft_mean_s, metrics.ttft_p50_s) == (2.0, 2.0)
    assert (metrics.ttft_all_p50_s, metrics.ttft_all_p90_s) == (3.0, None)
    assert (metrics.finished, metrics.failed, metrics.requests) == (2, 1, 3)


def test_attainment_weighs_by_tokens_and_counts_failures_as_missed() -> None:
    """One met request of 300 tokens, one missed of 100, one failed of 200: a half."""
    records = [
        with_ttft(1, input_tokens=300, slo_met=True),
        with_ttft(9, input_tokens=100, slo_met=False),
        with_ttft(1, "failed", input_tokens=200, slo_met=False),
        with_ttft(1, input_tokens=999, slo_met=None),
    ]
    metrics = summarise(records, ALL)
    assert metrics.slo_attainment == 0.5
    attained = {b.name: (b.requests, b.slo_attainment) for b in metrics.buckets}
    assert attained == {"64-256": (2, 0.0), ">=256": (2, 1.0)}


def test_hit_rates_are_shares_of_input_tokens() -> None:
    """Of 2 x 100 input tokens 32 were cached, and an unlimited cache would have had 96."""
    keys = tuple(range(6))
    records = records_of([Request(n, n, 100, 2, keys) for n in range(2)], cached_tokens=16)
    metrics = summarise(records, ALL)
    assert (metrics.hit_rate, metrics.oracle_hit_rate) == (32 / 200, 96 / 200)


def test_unknown_content_gives_no_hit_rate() -> None:
    """Lengths alone say nothing about reuse: None, not 0."""
    metrics = summarise(records_of([Request(0, 0, 100, 2, None)]), ALL)
    assert (metrics.hit_rate, metrics.oracle_hit_rate) == (None, None)


def test_the_warm_up_is_left_out_and_recorded() -> None:
    """Of 20 requests the first 3 are warm-up at 15 %; counts by status cover all."""
    records = [with_ttft(SECOND if number < 3 else 5 * SECOND) for number in range(20)]
    metrics = summarise(records, Measurement())
    assert (metrics.warmup_requests, metrics.measured_requests, metrics.finished) == (3, 17, 20)
    assert metrics.ttft_mean_s == 5.0


def test_throughput_is_over_the_measured_span() -> None:
    """Two requests of 40 tokens end 8 s after the first arrival."""
    records = [
        with_ttft(1, arrival_ns=2 * SECOND, t_ns=5 * SECOND),
        with_ttft(1, arrival_ns=3 * SECOND, t_ns=10 * SECOND),
    ]
    metrics = summarise(records, ALL)
    assert (metrics.measured_s, metrics.requests_per_s, metrics.input_tokens_per_s) == (8.0, 0.25, 10.0)


def test_an_empty_run_has_no_numbers() -> None:
    """With no request everything but the counts is None."""
    metrics = summarise([], Measurement())
    undefined = (metrics.ttft_mean_s, metrics.ttft_all_p50_s, metrics.slo_attainment, metrics.hit_rate)
    assert undefined == (None,) * 4
    assert (metrics.requests, metrics.measured_s, metrics.buckets) == (0, None, ())


def test_a_run_of_many_adds_up() -> None:
    """The counts by status add up to the requests, the buckets to the measured ones."""
    folds = RunFolds(a_header())
    folds.apply(a_history(40)[:-9])
    folds.finish()
    metrics = summarise(folds.requests, ALL)
    by_status = (metrics.finished, metrics.failed, metrics.rejected, metrics.cancelled, metrics.interrupted)
    assert metrics.interrupted > 0
    assert sum(by_status) == metrics.requests == 40
    assert sum(bucket.requests for bucket in metrics.buckets) == metrics.measured_requests


def test_length_buckets() -> None:
    """A bound belongs to the bucket above it; whole thousands are short."""
    names = [length_bucket(tokens, (8_192, 32_768)) for tokens in (1, 8_191, 8_192, 32_767, 32_768)]
    assert names == ["<8K", "<8K", "8K-32K", "8K-32K", ">=32K"]
    assert [length_bucket(tokens, (500,)) for tokens in (499, 500)] == ["<500", ">=500"]
    assert length_bucket(5, ()) == "all"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("warmup_share", 1.0, "warmup_share must be in"),
        ("decision_share", -0.1, "decision_share must be in"),
        ("worker_sample_s", 0.0, "worker_sample_s must be in"),
    ],
)
def test_bad_settings_are_refused(field: str, value: object, said: str) -> None:
    """Each setting names itself, what was found and what is allowed."""
    with pytest.raises(msgspec.ValidationError, match=said):
        msgspec.convert({field: value}, Measurement)


@settings(deadline=None)
@given(share=st.floats(0, 1))
def test_the_sampled_share_is_the_share_asked_for(share: float) -> None:
    """Of 10,000 requests as many are sampled as asked for, within a hundredth; none at 0, all at 1."""
    config = Measurement(decision_share=share)
    sampled = sum(config.samples(number) for number in range(10_000)) / 10_000
    assert sampled == pytest.approx(share, abs=0.01)
    assert Measurement(decision_share=0.0).samples(0) is False
