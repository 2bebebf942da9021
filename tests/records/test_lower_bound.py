"""The TTFT that no placement can beat, and a run as a multiple of it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import BLOCK_TOKENS, a_cluster, a_control_plane, a_profile, shared_prefix_requests
from tests.support.recorded import a_header, a_life
from vertumnus.domain.codec import Record
from vertumnus.domain.request import Request
from vertumnus.records.config import Measurement
from vertumnus.records.folds import RunFolds
from vertumnus.records.lower_bound import LowerBound
from vertumnus.records.metrics import summarise
from vertumnus.records.request_record import RequestRecord
from vertumnus.serving.loop import Loop
from vertumnus.sim.durations import Durations
from vertumnus.sim.engine import SimEngine
from vertumnus.workers.fleet import Fleet

MS = 1_000_000
ALL = Measurement(warmup_share=0.0)


def records_of(*requests: Request) -> list[RequestRecord]:
    """Return the records of *requests*, in order of arrival."""
    folds = RunFolds(a_header())
    for request in requests:
        folds.apply(a_life(request))
    return folds.requests


def test_the_bound_by_hand() -> None:
    """E_2(4000, 0) = 10 + 2 + 40 + (400 + 80.01)/2 ms, less than E_1; hand-off 1 + 4 ms, one step of 2 ms."""
    (record,) = records_of(Request(0, 0, 4_000, 1, ()))
    assert LowerBound(a_profile(), (1, 2)).ttft(record) == pytest.approx((292.01 + 7) * MS, abs=10_001)


def test_only_degrees_of_the_pool_count() -> None:
    """A pool of degree 1 alone cannot do better than E_1, though the profile knows degree 4."""
    (record,) = records_of(Request(0, 0, 4_000, 1, ()))
    bounds = [LowerBound(a_profile(), degrees).ttft(record) for degrees in ((1,), (1, 2), (1, 2, 4), (4, 8))]
    assert bounds[0] > bounds[1] > bounds[2] == bounds[3]


def test_whatever_arrived_before_is_cached() -> None:
    """The second of two prompts of four blocks and a token computes that token alone."""
    keys = (1, 2, 3, 4)
    _, second = records_of(Request(0, 0, 65, 1, keys), Request(1, 1, 65, 1, keys))
    predicted = a_profile().prefill_time().predict(1, 1, 64)
    assert LowerBound(a_profile(), (1, 2)).ttft(second) == predicted + 1_065_000 + 2 * MS


def test_unknown_content_has_no_bound() -> None:
    """Without block keys nobody knows what could have been reused; the run's mean is then undefined."""
    records = records_of(Request(0, 0, 100, 1, None), Request(1, 1, 100, 1, ()))
    bound = LowerBound.of(a_header())
    assert bound.ttft(records[0]) is None and bound.ttft(records[1]) is not None
    metrics = summarise(records, ALL, bound)
    assert (metrics.ttft_bound_mean_s, metrics.ttft_over_bound) == (None, None)


def test_a_run_is_told_as_a_multiple() -> None:
    """Mean TTFT over mean bound; without a bound there is none."""
    records = records_of(Request(0, 0, 100, 1, ()), Request(1, 1, 3_000, 1, ()))
    bound = LowerBound.of(a_header())
    metrics = summarise(records, ALL, bound)
    bounds = [bound.ttft(record) for record in records]
    assert metrics.ttft_bound_mean_s == pytest.approx(sum(bounds) / 2e9)
    assert metrics.ttft_over_bound == pytest.approx(metrics.ttft_mean_s / metrics.ttft_bound_mean_s)
    assert summarise(records, ALL).ttft_over_bound is None


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(1, 20)), min_size=1, max_size=30),
    st.integers(0, 40_000_000),
)
def test_no_simulated_request_beats_it(lengths, gap_ns: int) -> None:
    """Without noise every TTFT of a run is at least its bound."""
    cluster = a_cluster()
    folds, told = RunFolds(a_header()), []
    engine = SimEngine(Durations(a_profile(), 0, 0.0, link=cluster.link, block_tokens=BLOCK_TOKENS))
    loop = Loop(
        engine,
        Fleet(cluster, BLOCK_TOKENS),
        a_control_plane(cluster),
        lambda *each: told.append(Record(*each)),
    )
    loop.serve(shared_prefix_requests(lengths, gap_ns))
    folds.apply(told)
    bound = LowerBound.of(a_header())
    assert all(record.ttft_ns >= bound.ttft(record) for record in folds.requests)
