"""D(k), the long fraction and the sizes of a window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import a_prefill_time
from tests.support.reconfig import SPAN_NS
from vertumnus.policy.reconfig.sizes import SizeClass, SizeHistogram
from vertumnus.policy.reconfig.window import DemandWindow


def test_a_window_by_hand() -> None:
    """Three requests: 5 + 7 s at degree 1, 3 s at degree 2; one of three is long, at the bound itself."""
    window = DemandWindow(0, long_tokens=100)
    window.add(2, 40, 60, 3)
    window.add(1, 10, 0, 5)
    window.add(1, 99, 0, 7)
    report = window.close(SPAN_NS)
    assert (report.index, report.start_ns, report.end_ns, report.span_ns) == (0, 0, SPAN_NS, SPAN_NS)
    assert (report.requests, report.demand_ns) == (3, 15)
    assert report.demand_by_degree_ns == {1: 12, 2: 3}
    assert report.long_fraction == pytest.approx(1 / 3)


def test_the_long_fraction_of_tokens() -> None:
    """By tokens the same long request of 100 among 109 others is 100 of 209."""
    window = DemandWindow(0, 100, "tokens")
    for uncached, cached in ((40, 60), (10, 0), (99, 0)):
        window.add(1, uncached, cached, 1)
    assert window.close(1).long_fraction == 100 / 209


def test_windows_are_consecutive() -> None:
    """The next window starts where the last ended, empty: no demand, and no long fraction at all."""
    window = DemandWindow(5, 100)
    window.add(1, 200, 0, 9)
    assert window.close(25).demand_ns == 9
    report = window.close(45)
    assert (report.index, report.start_ns, report.end_ns) == (1, 25, 45)
    assert (report.requests, report.demand_ns, report.demand_by_degree_ns, report.sizes) == (0, 0, {}, ())
    assert report.long_fraction is None


def test_small_sizes_are_exact() -> None:
    """Below 16 tokens every (R, P) is its own class; above, nearly equal sizes share their mean."""
    histogram = SizeHistogram()
    for uncached, cached in ((15, 0), (14, 0), (15, 0), (1000, 64), (1010, 66)):
        histogram.add(uncached, cached)
    assert histogram.classes() == (SizeClass(2, 15, 0), SizeClass(1, 14, 0), SizeClass(2, 1005, 65))


sizes = st.tuples(st.integers(1, 200_000), st.integers(0, 200_000))


@given(st.lists(sizes, min_size=1, max_size=60))
def test_classes_predict_what_their_requests_do(requests: list[tuple[int, int]]) -> None:
    """Predicted time over the classes is within 0.5 % of the sum over the requests, at each degree."""
    histogram = SizeHistogram()
    for uncached, cached in requests:
        histogram.add(uncached, cached)
    classes = histogram.classes()
    assert sum(size.requests for size in classes) == len(requests)
    model = a_prefill_time()
    for degree in model.degrees:
        exact = sum(model.predict(degree, *request) for request in requests)
        binned = sum(n * model.predict(degree, r, p) for n, r, p in classes)
        assert binned == pytest.approx(exact, rel=0.005)


def test_memory_is_bounded_by_classes() -> None:
    """20,000 different prompts without a prefix need no more than 8 classes a doubling."""
    histogram = SizeHistogram()
    for tokens in range(1, 20_001):
        histogram.add(tokens, 0)
    assert len(histogram.classes()) <= 8 * 15
