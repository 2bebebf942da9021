"""Held-out judgement: objectives by hand, and intervals that cover what they should."""

import numpy as np
import pytest

from tests.support.builders import a_record
from vertumnus.domain.units import SECOND
from vertumnus_profiling.tune.judge import Pair, judge
from vertumnus_profiling.tune.objectives import OBJECTIVES, Requests

MEAN = OBJECTIVES["mean_ttft"]


def requests(ttft_s: np.ndarray, target_s: float = 1.0) -> Requests:
    """One token each, due within *target_s*."""
    return Requests(ttft_s, np.ones(len(ttft_s)), (ttft_s <= target_s).astype(float))


def a_queue(seed: int, level: float, size: int = 2_000) -> np.ndarray:
    """TTFTs in which neighbours are alike, about *level* in the mean."""
    random = np.random.default_rng(seed)
    slow = np.repeat(random.exponential(level, size // 50), 50)
    return slow + random.uniform(0, 0.01, size)


def test_objectives_by_hand() -> None:
    """1, 2, 3, 4 s of 10, 10, 10, 70 tokens, the last one late: 2.5 s, 3.7 s, 30 %."""
    four = Requests(
        np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 10.0, 10.0, 70.0]), np.array([10.0, 10.0, 10.0, 0.0])
    )
    assert MEAN.measure(four) == 2.5
    assert OBJECTIVES["p90_ttft"].measure(four) == pytest.approx(np.percentile(four.ttft_s, 90))
    assert OBJECTIVES["attainment"].measure(four) == 0.3
    assert OBJECTIVES["attainment"].cost(four) == -0.3 and MEAN.cost(four) == 2.5


def test_a_lost_request_is_infinitely_late() -> None:
    """The mean is infinite; the median is that of the others as long as it does not fall on one lost."""
    records = [
        a_record(0, ttft_ns=9 * SECOND),
        *(a_record(n, ttft_ns=SECOND, input_tokens=100, slo_met=True) for n in range(1, 4)),
        a_record(4, status="failed", ttft_ns=None, input_tokens=50, slo_met=False),
    ]
    measured = Requests.of(records, warmup=1)
    assert measured.ttft_s.tolist() == [1.0, 1.0, 1.0, float("inf")]
    assert MEAN.measure(measured) == float("inf")
    assert OBJECTIVES["p50_ttft"].measure(measured) == 1.0
    assert OBJECTIVES["attainment"].measure(measured) == pytest.approx(300 / 350)


def test_a_clear_gain_is_better_and_a_loss_is_worse() -> None:
    """Every request 10 % faster: the interval is -10 % all over; the other way round it is a loss."""
    slow = [requests(a_queue(seed, 0.5)) for seed in range(3)]
    fast = [requests(0.9 * each.ttft_s) for each in slow]
    gain = judge([Pair(*pair) for pair in zip(slow, fast, strict=True)], MEAN)
    assert (gain.change, gain.low, gain.high) == pytest.approx((-0.1, -0.1, -0.1))
    assert gain.verdict == "better"
    assert judge([Pair(*pair) for pair in zip(fast, slow, strict=True)], MEAN).verdict == "worse"


def test_more_attainment_is_better() -> None:
    """Points, not shares of shares: 50 % to 60 % is +10 points."""
    half = requests(np.tile([0.5, 1.5], 500))
    more = requests(np.tile([0.5, 0.5, 0.5, 1.5, 1.5], 200))
    judgement = judge([Pair(half, more)], OBJECTIVES["attainment"])
    assert judgement.change == pytest.approx(0.1) and judgement.verdict == "better"


def test_the_interval_covers() -> None:
    """Two draws of the same queue differ by chance alone: of 20 intervals nearly all hold 0."""
    held = 0
    for seed in range(0, 80, 4):
        pairs = [Pair(requests(a_queue(seed + n, 0.5)), requests(a_queue(seed + n + 2, 0.5))) for n in (0, 1)]
        judgement = judge(pairs, MEAN, resamples=200)
        held += judgement.verdict == "not shown to differ"
        assert (judgement.low <= 0.0 <= judgement.high) == (judgement.verdict == "not shown to differ")
    assert held >= 16


def test_a_config_against_itself_is_not_shown_to_differ() -> None:
    """An interval of no width at 0."""
    same = requests(a_queue(1, 0.5))
    judgement = judge([Pair(same, same)], MEAN)
    assert (judgement.change, judgement.low, judgement.high) == (0.0, 0.0, 0.0)
    assert judgement.verdict == "not shown to differ"


def test_lost_requests_leave_no_verdict_for_the_tuned() -> None:
    """An infinite mean is never better."""
    fine = requests(np.full(200, 0.5))
    lost = requests(np.where(np.arange(200) == 7, np.inf, 0.1))
    assert judge([Pair(fine, lost)], MEAN).verdict != "better"


def test_the_same_draws_every_time() -> None:
    """The interval is a function of the numbers."""
    pairs = [Pair(requests(a_queue(1, 0.5)), requests(a_queue(2, 0.4)))]
    assert judge(pairs, MEAN) == judge(pairs, MEAN)
