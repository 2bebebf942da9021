"""Configs of the trace package refuse what is out of bounds or would be ignored."""

import math

import pytest

from tests.support.traces import a_workload
from vertumnus.trace.config import ArrivalConfig, SloBucket, SloConfig


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"requests": 0}, "requests must be at least 1, got 0"),
        ({"start_s": -1.0}, "start_s must be at least 0, got -1"),
        ({"duration_s": 0.0}, "duration_s must be above 0, got 0"),
        ({"block_tokens": 0}, "block_tokens must be at least 1, got 0"),
        ({"token_scale": 0.0}, "token_scale must be above 0 and at most 1, got 0"),
        ({"token_scale": 2.0}, "token_scale must be above 0 and at most 1, got 2"),
        ({"token_scale": 0.3}, "one over a whole number (1/3?), got 0.3"),
        ({"token_scale": 1 / 1024}, "block_tokens = 512 into whole tokens, got 0.000976562 (0.5 tokens)"),
        ({"token_scale": 1 / 3}, "block_tokens = 512 into whole tokens"),
        (
            {"generator": None},
            "generator must name one (l_eval, tool_agent, production, production_day, phases, ladder)",
        ),
    ],
)
def test_a_workload_out_of_bounds_names_field_value_and_bound(
    fields: dict[str, object], message: str
) -> None:
    """Each message starts with the field, so that a prefix makes it a key path."""
    with pytest.raises(ValueError) as error:
        a_workload(**fields)
    assert message in str(error.value)
    assert str(error.value).split()[0] in {*fields, "generator"}


def test_all_problems_of_a_workload_come_at_once() -> None:
    """Three wrong fields give three lines."""
    with pytest.raises(ValueError) as error:
        a_workload(requests=0, start_s=math.inf, block_tokens=0)
    assert len(str(error.value).splitlines()) == 3


def test_a_sixteenth_of_the_tokens_makes_blocks_of_32() -> None:
    """512-token blocks become 32-token blocks at token_scale 1/16."""
    workload = a_workload(token_scale=1 / 16)
    assert (workload.token_divisor, workload.scaled_block_tokens) == (16, 32)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rate": 0.0}, "rate must be above 0, got 0"),
        ({"rate": -3.0}, "rate must be above 0, got -3"),
        ({"rate": math.nan}, "rate must be above 0, got nan"),
        ({"time_scale": 0.0}, "time_scale must be above 0, got 0"),
        ({"load": -0.5}, "load must be above 0, got -0.5"),
        ({"rate": 10.0, "time_scale": 0.5}, "exclude one another, got rate=10, time_scale=0.5"),
        ({"rate": 10.0, "load": 0.5}, "exclude one another, got rate=10, load=0.5"),
        ({"process": "poisson"}, "rate or load must be set for process=poisson"),
        ({"process": "poisson", "time_scale": 2.0}, "time_scale has no effect with process=poisson"),
        ({"process": "poisson", "rate": 1.0, "jitter": "uniform_tick"}, "jitter must be none"),
        ({"tick_s": 0.0}, "tick_s must be at least 1e-09, got 0"),
        ({"patience_s": 0.0}, "patience_s must be at least 1e-09, got 0"),
        ({"patience_s": -2.5}, "patience_s must be at least 1e-09, got -2.5"),
        ({"patience_s": math.nan}, "patience_s must be at least 1e-09, got nan"),
    ],
)
def test_arrivals_refuse_conflicts_and_bounds(fields: dict[str, object], message: str) -> None:
    """Two keys that both set the speed, or one that nothing would read, are errors (case 7)."""
    with pytest.raises(ValueError) as error:
        ArrivalConfig(**fields)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_a_measured_rate_replaces_the_load() -> None:
    """The stored config then shows the rate really used, and nothing that contradicts it."""
    arrival = ArrivalConfig(process="poisson", load=0.7)
    assert arrival.at_rate(4.5) == ArrivalConfig(process="poisson", rate=4.5)


def _slo(*bounds: int | None) -> SloConfig:
    return SloConfig(
        buckets=tuple(SloBucket(below_tokens=bound, ttft_s=1.0 + i) for i, bound in enumerate(bounds))
    )


@pytest.mark.parametrize(
    ("tokens", "scale", "target_s"),
    [
        (8_191, 1.0, 1),
        (8_192, 1.0, 2),
        (32_768, 1.0, 3),
        (511, 1 / 16, 1),
        (512, 1 / 16, 2),
        (2_048, 1 / 16, 3),
    ],
)
def test_slo_bounds_shrink_with_the_tokens(tokens: int, scale: float, target_s: int) -> None:
    """A prompt falls into the bucket of its length before scaling; bounds are exclusive."""
    assert _slo(8_192, 32_768, None).ttft_target_ns(tokens, scale) == target_s * 10**9


@pytest.mark.parametrize(
    "bounds", [(), (8_192,), (None, 8_192), (8_192, 8_192, None), (9, 5, None), (0, None)]
)
def test_slo_buckets_must_ascend_and_end_open(bounds: tuple[int | None, ...]) -> None:
    """Every length needs exactly one target."""
    with pytest.raises(ValueError, match="buckets must"):
        _slo(*bounds)


def test_slo_targets_must_be_positive() -> None:
    """A target of 0 s can never be met."""
    with pytest.raises(
        ValueError, match=r"buckets.ttft_s must be above 0, got 0\ntpot_s must be above 0, got 0"
    ):
        SloConfig(buckets=(SloBucket(ttft_s=0.0),), tpot_s=0.0)
