"""Windows and arrivals: every row of the window once, in order, at the times that were asked for."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.traces import rows_at, stamps
from vertumnus.domain.errors import ConfigError
from vertumnus.trace.arrivals import describe_arrivals, mean_rate, with_arrivals
from vertumnus.trace.config import ArrivalConfig
from vertumnus.trace.rows import TraceRow
from vertumnus.trace.window import window

S = 1_000_000_000


def _times(rows: list[TraceRow]) -> list[int]:
    return [row.arrival_ns for row in rows]


def _window(rows: list[TraceRow], *bounds: float | int | None) -> list[TraceRow]:
    return list(window(rows, *bounds))  # type: ignore[arg-type]


def _identities(rows: list[TraceRow]) -> list[int]:
    return [row.output_tokens for row in rows]


def test_a_window_counts_from_the_first_row() -> None:
    """Start is inclusive, end exclusive; a trace may begin at any stamp."""
    rows = rows_at(100 * S, 101 * S, 102 * S, 102 * S, 103 * S)
    assert _identities(_window(rows, 1.0, 2.0)) == [2, 3, 4]
    assert _identities(_window(rows, 1.0, None, 2)) == [2, 3]
    assert _window(rows, 4.0) == [] == _window([])


@given(stamps(), st.floats(0, 70), st.none() | st.floats(0.1, 70), st.none() | st.integers(1, 50))
def test_a_window_has_every_row_once_in_order(
    arrivals: list[int], start_s: float, duration_s: float | None, requests: int | None
) -> None:
    """Case 6: exactly the rows inside the bounds, whatever the window."""
    rows = rows_at(*arrivals)
    low = round(start_s * S)
    high = low + round(duration_s * S) if duration_s is not None else 10**18
    inside = [row for row in rows if low <= row.arrival_ns - arrivals[0] < high]
    assert _window(rows, start_s, duration_s, requests) == inside[:requests]


@given(stamps(), st.integers(1, 30), st.integers(1, 30))
def test_neighbouring_windows_split_the_trace(arrivals: list[int], first_s: int, second_s: int) -> None:
    """No row is lost or sent twice between windows that touch."""
    rows = rows_at(*arrivals)
    parts = [*window(rows, 0, first_s), *window(rows, first_s, second_s)]
    assert parts == _window(rows, 0, first_s + second_s)


ARRIVALS = st.sampled_from(
    [
        ArrivalConfig(),
        ArrivalConfig(time_scale=0.37),
        ArrivalConfig(rate=12.5),
        ArrivalConfig(process="poisson", rate=12.5),
        ArrivalConfig(jitter="uniform_tick"),
        ArrivalConfig(jitter="uniform_tick", tick_s=40.0, time_scale=2.0),
    ]
)


@given(stamps(), ARRIVALS, st.integers(0, 2**40))
def test_arrivals_ascend_from_zero_and_keep_the_rows(
    arrivals: list[int], arrival: ArrivalConfig, seed: int
) -> None:
    """Times change, nothing else; the same seed gives the same times."""
    rows = rows_at(*arrivals)
    if arrival.rate and arrival.process == "trace" and arrivals[0] == arrivals[-1] and len(rows) > 1:
        return
    timed = with_arrivals(rows, arrival, seed)
    assert _identities(timed) == _identities(rows)
    assert _times(timed)[0] == 0
    assert _times(timed) == sorted(_times(timed))
    assert timed == with_arrivals(rows, arrival, seed)


def test_time_scale_multiplies_gaps() -> None:
    """Gaps of 1 and 3 s at 0.5 become 0.5 and 1.5 s."""
    timed = with_arrivals(rows_at(5 * S, 6 * S, 9 * S), ArrivalConfig(time_scale=0.5), 0)
    assert _times(timed) == [0, S // 2, 2 * S]


@given(stamps(), st.floats(0.01, 1_000))
def test_a_rate_is_gaps_over_span(arrivals: list[int], rate: float) -> None:
    """(n - 1) / span comes out as asked, and all gaps shrink by one factor."""
    rows = rows_at(*arrivals)
    if arrivals[0] == arrivals[-1]:
        return
    timed = with_arrivals(rows, ArrivalConfig(rate=rate), 0)
    assert mean_rate(timed) == pytest.approx(rate, rel=1e-6)
    factor = _times(timed)[-1] / (arrivals[-1] - arrivals[0])
    for time, stamp in zip(_times(timed), arrivals, strict=True):
        assert time == pytest.approx((stamp - arrivals[0]) * factor, abs=1)


def test_a_rate_needs_a_span() -> None:
    """Requests that all come at once have no gap to scale; one request needs none."""
    with pytest.raises(
        ConfigError,
        match=r"arrival: all 2 requests .* at once, .* to 5 requests/s \(arrival.rate, or arrival.load\)",
    ):
        with_arrivals(rows_at(7, 7), ArrivalConfig(rate=5), 0)
    assert _times(with_arrivals(rows_at(7), ArrivalConfig(rate=5), 0)) == [0]
    assert mean_rate(rows_at(7)) is None is mean_rate([])


@pytest.mark.parametrize(
    ("arrival", "found"),
    [
        (ArrivalConfig(rate=1e-300), "1e-300 requests/s"),
        (ArrivalConfig(process="poisson", rate=1e-9), "1e-09 requests/s"),
        (ArrivalConfig(time_scale=1e300), "time_scale 1e\\+300"),
    ],
)
def test_arrivals_have_an_end(arrival: ArrivalConfig, found: str) -> None:
    """Times that no table could hold are refused; three years are not."""
    rows = rows_at(0, S, 2 * S)
    with pytest.raises(ConfigError, match=rf"arrival: found {found}, so that 3 requests would take"):
        with_arrivals(rows, arrival, 0)
    assert _times(with_arrivals(rows, ArrivalConfig(rate=2e-8), 0))[-1] == 10**8 * S
    assert with_arrivals(rows_at(7), arrival, 0)


def test_a_trace_of_its_own_has_an_end_too() -> None:
    """Whether its stamps span so much or a tick that they are spread over."""
    long_tick = ArrivalConfig(jitter="uniform_tick", tick_s=1.1e8)
    with pytest.raises(ConfigError, match=r"arrival: found tick_s 1.1e\+08, so that 3 requests would take"):
        with_arrivals(rows_at(0, S, 2 * S), long_tick, 0)
    with pytest.raises(ConfigError, match=r"arrival: found the trace's own times, so that 2 requests would"):
        with_arrivals(rows_at(0, 2 * 10**8 * S), ArrivalConfig(), 0)


def test_a_load_must_be_measured_first() -> None:
    """Nothing here knows the capacity that a load is a share of."""
    with pytest.raises(ConfigError, match=r"arrival\.load: found 0.7"):
        with_arrivals(rows_at(0, 1), ArrivalConfig(load=0.7), 0)


def test_poisson_gaps_have_mean_and_spread_of_an_exponential() -> None:
    """20,000 gaps at 8 req/s: mean 0.125 s within 3 %, standard deviation equal to it within 5 %."""
    times = _times(with_arrivals(rows_at(*range(20_001)), ArrivalConfig(process="poisson", rate=8), 1))
    gaps = [(later - earlier) / S for earlier, later in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(0.125, rel=0.03)
    assert spread == pytest.approx(0.125, rel=0.05)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60).map(sorted), st.integers(0, 999))
def test_jitter_stays_within_the_tick(ticks: list[int], seed: int) -> None:
    """Each row moves into the tick that its stamp opens, and rows of a tick keep their order."""
    tick_ns = 3_050_000_000
    timed = with_arrivals(
        rows_at(*(tick * tick_ns for tick in ticks)), ArrivalConfig(jitter="uniform_tick"), seed
    )
    gaps = zip(_times(timed), ticks, strict=True)
    assert all(abs(time - (tick - ticks[0]) * tick_ns) < tick_ns for time, tick in gaps)


def test_jitter_spreads_a_tick_evenly() -> None:
    """4,000 requests of one tick fill its four quarters alike, within 10 %."""
    timed = with_arrivals(rows_at(*[0] * 4_000), ArrivalConfig(jitter="uniform_tick", tick_s=4.0), 5)
    quarters = [sum(q * S <= time < (q + 1) * S for time in _times(timed)) for q in range(4)]
    assert quarters == pytest.approx([1_000] * 4, rel=0.1)


def test_the_arrivals_really_used_are_described() -> None:
    """Case 7: process, factor, smoothing and mean rate, and only what took part."""
    arrival = ArrivalConfig(time_scale=0.5, jitter="uniform_tick", tick_s=1.0)
    assert describe_arrivals(rows_at(0, S), arrival) == (
        "arrivals of the trace, gaps x 0.5, spread over ticks of 1 s, 1 req/s"
    )
    assert describe_arrivals(rows_at(7), ArrivalConfig(process="poisson", rate=3)) == "Poisson arrivals"
    assert describe_arrivals(rows_at(0, S), ArrivalConfig(patience_s=2.5)) == (
        "arrivals of the trace, given up after 2.5 s without a first token, 1 req/s"
    )
