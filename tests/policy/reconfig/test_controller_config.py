"""The controllers' parameters: defaults, names and what is refused."""

import msgspec
import pytest

from vertumnus.policy.reconfig.config import (
    AdviseController,
    ControllerConfig,
    ManualController,
    OffController,
    ThresholdsController,
)

KINDS = {
    "thresholds": ThresholdsController,
    "advise": AdviseController,
    "manual": ManualController,
    "off": OffController,
}


@pytest.mark.parametrize("name", KINDS)
def test_the_name_picks_the_controller(name: str) -> None:
    """A mapping with only the name gives that controller at its defaults, and goes back to the name."""
    config: ControllerConfig = msgspec.convert({"name": name}, ControllerConfig)
    assert type(config) is KINDS[name]
    assert msgspec.to_builtins(config)["name"] == name


def test_starting_values() -> None:
    """The values to tune from are those written down with the algorithms, for advise as well."""
    for config in (ThresholdsController(), AdviseController()):
        assert (config.window_s, config.upper, config.lower) == (20.0, 1.05, 0.65)
        assert (config.long_tokens, config.long_change) == (32_768, 0.05)
        assert (config.persistence, config.cooldown_windows) == (2, 2)
        assert config.switch_timeout_s == 5.0


@pytest.mark.parametrize("kind", [ThresholdsController, AdviseController])
@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"window_s": 0.0}, "window_s must be at least 0.01, got 0.0"),
        ({"window_s": float("inf")}, "window_s must be at least 0.01, got inf"),
        ({"persistence": 0}, "persistence must be at least 1 window, got 0"),
        ({"cooldown_windows": -1}, "cooldown_windows must be at least 0, got -1"),
        ({"lower": 1.05}, "0 <= lower < upper must hold, found lower 1.05 and upper 1.05"),
        ({"lower": float("nan")}, "0 <= lower < upper must hold, found lower nan and upper 1.05"),
        ({"upper": 0.0, "lower": -1.0}, "upper must be above 0, got 0.0"),
        ({"long_tokens": 0}, "long_tokens must be at least 1 token, got 0"),
        ({"long_change": 1.0}, "long_change must be in (0, 1), got 1.0"),
        ({"switch_timeout_s": 0.0}, "switch_timeout_s must be above 0, got 0.0"),
    ],
)
def test_each_wrong_value_is_named(kind: type, wrong: dict[str, float], problem: str) -> None:
    """The message names the field, or both that contradict each other, and says value and bound."""
    with pytest.raises(ValueError) as caught:
        kind(**wrong)
    assert problem in str(caught.value).splitlines()


def test_all_problems_at_once() -> None:
    """Three wrong fields give three lines."""
    with pytest.raises(ValueError) as caught:
        ThresholdsController(window_s=-1.0, persistence=0, lower=2.0)
    assert len(str(caught.value).splitlines()) == 3


def test_manual_has_a_time_limit_too() -> None:
    """A manual switch fails closed as well, so its limit is checked."""
    with pytest.raises(ValueError, match=r"switch_timeout_s must be above 0, got -1\.0"):
        ManualController(switch_timeout_s=-1.0)
