"""How long simulated jobs take: Eq. 2, the profile's costs, and noise that only the request decides (D9)."""

from math import exp
from statistics import mean, median, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import a_prefill_time, a_profile
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.jobs import StepJob, StepWork
from vertumnus.sim.config import SimConfig
from vertumnus.sim.durations import Durations

GOLDEN = [16_616_631, 17_963_439]

PREDICT = a_prefill_time().predict
PAIR = CpGroup(0, 2)


def a_step(*works: tuple[int, int, int], attempt: int = 0, job_id: int = 1) -> StepJob:
    """A step of (request, L, P) at degree 2."""
    return StepJob(job_id, PAIR, 0, tuple(StepWork(r, attempt, length, p, ()) for r, length, p in works))


def durations(seed: int = 0, sigma: float = 0.0) -> Durations:
    """Times of the toy profile."""
    return Durations(a_profile(), seed, sigma)


def test_without_noise_a_step_takes_its_prediction() -> None:
    """E_2(R, P) for one request; d only once for two."""
    assert durations().step(a_step((0, 100, 32))) == PREDICT(2, 68, 32)
    both = durations().step(a_step((0, 100, 32), (1, 50, 0)))
    assert both == PREDICT(2, 68, 32) + PREDICT(2, 50, 0) - 12_000_000


def test_hand_off_and_decoding_by_hand() -> None:
    """1 ms + 1 us a token for the copy; 2 ms a decode step."""
    assert durations().handoff(500) == 1_500_000
    assert [durations().decode(tokens) for tokens in (0, 1, 5)] == [0, 2_000_000, 10_000_000]


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(0, 10**9), st.integers(0, 3))
def test_noise_depends_on_seed_request_and_attempt_only(seed: int, request_id: int, attempt: int) -> None:
    """The same request takes the same time in any job, beside any other request and in any process."""
    alone = durations(seed, 0.06).step(a_step((request_id, 100, 0), attempt=attempt))
    again = durations(seed, 0.06)
    again.step(a_step((5, 70, 0)))
    assert again.step(a_step((request_id, 100, 0), attempt=attempt, job_id=77)) == alone


def test_noise_is_fixed_for_all_time() -> None:
    """A golden number: another machine, Python or hash seed gives the same run (D9)."""
    assert [durations(seed, 0.06).step(a_step((7, 100, 0))) for seed in (0, 1)] == GOLDEN


def test_attempts_and_seeds_draw_anew() -> None:
    """Another attempt, request or seed has another factor."""
    times = {
        durations(s, 0.06).step(a_step((r, 100, 0), attempt=a))
        for s, r, a in ((0, 7, 0), (1, 7, 0), (0, 8, 0), (0, 7, 1))
    }
    assert len(times) == 4


def test_noise_is_log_normal_around_the_prediction() -> None:
    """Over 4,000 requests: the median is the prediction, the spread of the logarithm is sigma."""
    clock, predicted = durations(0, 0.06), PREDICT(2, 100, 0)
    ratios = [clock.step(a_step((request_id, 100, 0))) / predicted for request_id in range(4_000)]
    assert median(ratios) == pytest.approx(1.0, abs=0.005)
    assert stdev(ratios) == pytest.approx(0.06, abs=0.004)
    assert mean(ratios) == pytest.approx(exp(0.06**2 / 2), abs=0.004)


@pytest.mark.parametrize("sigma", [-0.1, 2.5, float("nan")])
def test_a_spread_out_of_range_is_named(sigma: float) -> None:
    """noise_sigma is refused with value and bound."""
    with pytest.raises(ValueError, match=r"noise_sigma must be in \[0, 2\], got"):
        SimConfig(noise_sigma=sigma)
