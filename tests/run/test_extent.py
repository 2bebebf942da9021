"""Numbers with which a run would take longer than its log can tell, or than anybody waits."""

from typing import Any

import pytest

from tests.test_config import tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.units import SECOND
from vertumnus.run.extent import extent_problems
from vertumnus.trace.rows import TraceRow

ROWS = [TraceRow(0, 100, 10, None), TraceRow(50 * SECOND, 300, 30, None)]
"""400 prompt tokens of 1,000 bytes, 40 output tokens; 100*101/2 + 300*301/2 = 50,200 pairs."""


def problems(span_s: float = 50.0, **changes: Any) -> list[str]:
    """Return what is said of `ROWS`, without noise, with *changes* of the config."""
    config: RunConfig = to_run_config(tree(backend={"kind": "sim", "noise_sigma": 0.0}, **changes))
    return list(extent_problems(config, ROWS, round(span_s * SECOND)))


@pytest.mark.parametrize(
    ("key", "times"),
    [
        ("profile__prefill__startup_s", 2),
        ("profile__prefill__per_uncached_s", 400),
        ("profile__prefill__per_cached_s", 400),
        ("profile__prefill__divided_per_uncached_s", 400 / 2),
        ("profile__prefill__divided_per_pair_s", 50_200 / 2),
        ("profile__prefill__per_doubling_s", 2 * 2),
        ("profile__handoff_base_s", 2),
        ("profile__handoff_per_token_s", 400),
        ("profile__decode_step_s", 40),
    ],
)
def test_a_cost_of_all_requests_is_at_most_three_years(key: str, times: float) -> None:
    """1e8 s of them one after the other, at the degree of the pool at which the cost is highest."""
    policy = {"name": "least_loaded"}
    assert problems(policy=policy, **{key: 0.99e8 / times}, cache__scan_interval_s=1e6) == []
    (said,) = problems(policy=policy, **{key: 1.01e8 / times}, cache__scan_interval_s=1e6)
    assert said.startswith(f"{key.replace('__', '.')}: found ")
    assert "makes 1.01e+08 s" in said and f"must be at most {1e8 / times:.3g}, which" in said


def test_noise_counts_as_far_as_it_goes() -> None:
    """exp(4 * 0.5) = 7.389: a seventh of the time is enough."""
    config = to_run_config(tree(backend={"kind": "sim", "noise_sigma": 0.5}, profile__prefill__startup_s=7e6))
    (said,) = extent_problems(config, ROWS, 0)
    assert "makes 1.03e+08 s of the prefills of 2 requests; must be at most 6.77e+06," in said


def test_a_link_is_fast_enough_for_a_copy_of_each_prompt() -> None:
    """400,000 bytes in 1e8 s; a latency for each request."""
    assert problems(cluster__link={"bytes_per_s": 0.0041}) == []
    (said,) = problems(cluster__link={"bytes_per_s": 1e-300})
    assert said == (
        "cluster.link.bytes_per_s: found 1e-300, which makes 4e+305 s of the copies of 2 prompts; "
        "must be at least 0.004, which makes 1e+08 s"
    )
    (said,) = problems(cluster__link={"latency_s": 1e9})
    assert said.startswith("cluster.link.latency_s: found 1e+09, which makes 2e+09 s of the copies")


def test_what_is_weighed_fits_too() -> None:
    """A cost is at most that of the longest prompt; a place in a queue is ageing times arrival."""
    slow = {"profile__prefill__per_uncached_s": 1.0}  # 300 s for the longest prompt
    for name, most in (("beta", 1e8 / 300), ("gpu_time_weight", 1e8 / 1200)):
        assert problems(policy={"name": "paper", name: 0.99 * most}, **slow) == []
        (said,) = problems(policy={"name": "paper", name: 1.01 * most}, **slow)
        assert said.startswith(f"policy.{name}: found ") and "of the cost of the longest prompt" in said
    (said,) = problems(1e7, policy={"name": "vertumnus", "ageing": 11.0})
    assert said.startswith("policy.ageing: found 11, which makes 1.1e+08 s of the last request's place in")


def test_timers_of_years_of_nothing_are_refused() -> None:
    """Five million scans or windows are too many, and what makes so many is named with its least value."""
    assert problems(4.9e6, cache__scan_interval_s=1.0) == []
    (said,) = problems(5e6 + 1, cache__scan_interval_s=1.0)
    assert said == (
        "cache.scan_interval_s: found 1, which makes 5,000,002 prefix scans in the 5e+06 s that requests "
        "take to come and be served; must be at least 1"
    )
    controller = {"name": "what_if", "window_s": 2.0, "replay_s": 2.0}
    (said,) = problems(1.1e7, cache__scan_interval_s=20.0, controller=controller)
    assert said.startswith("controller.window_s: found 2, which makes 5,500,000 windows in the 1.1e+07 s")


def test_a_hand_off_of_years_counts_as_time_to_wait() -> None:
    """A scan every millisecond for 6,000 s of the last hand-off."""
    (said,) = problems(0, profile__handoff_base_s=6000.0, cache__scan_interval_s=0.001)
    assert said.startswith("cache.scan_interval_s: found 0.001, which makes 6,000,600 prefix scans")
