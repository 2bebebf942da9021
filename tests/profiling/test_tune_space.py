"""Search spaces: which keys of a config they hold, and the values between their ends."""

from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.config.reading import key_paths
from vertumnus.domain.errors import ConfigError
from vertumnus_profiling.tune.spaces import SPACES, Parameter, Range, parameters_of, with_values


@lru_cache
def a_config(*words: str) -> RunConfig:
    """A simulated config with *words*."""
    with hydra_configs():
        return to_run_config(plain_tree(composed(("+experiment=tool_agent", "backend=sim", *words))))


def keys(space: str, *words: str) -> list[str]:
    """The keys that *space* searches in a config with *words*."""
    return [each.range.key for each in parameters_of(space, (), a_config(*words))]


def test_every_declared_key_is_a_key_of_some_config() -> None:
    """A space is one config group and names nothing that does not exist."""
    known = set(key_paths(RunConfig))
    for space, ranges in SPACES.items():
        assert {each.key for each in ranges} <= known
        assert {each.key.partition(".")[0] for each in ranges} == {space}


def test_a_space_follows_the_variant() -> None:
    """beta and lambda with the published policy, the threshold with the static one, in tokens as served."""
    assert keys("policy", "policy=paper") == ["policy.beta", "policy.gpu_time_weight"]
    static = ("policy=static", "policy.length_threshold=4096")
    (threshold,) = parameters_of("policy", (), a_config(*static, "scale=sixteenth"))
    assert (threshold.range.low, threshold.range.high, threshold.whole) == (64, 4096, True)
    thresholds, what_if = (keys("controller", f"controller={name}") for name in ("thresholds", "what_if"))
    assert "controller.upper" in thresholds and "controller.min_gain" not in thresholds
    manager = {"cache.manager.theta_inter_s", "cache.manager.theta_intra", "cache.manager.theta_reclaim"}
    assert manager <= set(keys("cache", "cache=vertumnus"))
    assert keys("cache", "cache=off") == ["cache.scan_interval_s", "cache.decay"]
    assert "controller.min_gain" in what_if and "controller.upper" not in what_if
    assert set(thresholds) | set(what_if) == {each.key for each in SPACES["controller"]}


def test_vary_narrows_a_range_or_adds_a_key() -> None:
    """The range given takes the declared one's place; a key beside them comes last."""
    varied = (Range("controller.upper", 0.8, 0.9), Range("controller.long_tokens", 1_000, 9_000, log=True))
    found = parameters_of("controller", varied, a_config("controller=thresholds"))
    by_key = {each.range.key: each for each in found}
    assert by_key["controller.upper"].range == varied[0]
    assert found[-1] == Parameter(varied[1], True, 32_768)


def test_a_key_may_be_kept() -> None:
    """It is not searched; one that is not there is a slip."""
    config = a_config("policy=paper")
    (only,) = parameters_of("policy", (), config, ["policy.beta"])
    assert only.range.key == "policy.gpu_time_weight"
    with pytest.raises(ConfigError, match=r"--keep policy.betta: not searched; did you mean policy.beta\?"):
        parameters_of("policy", (), config, ["policy.betta"])


@pytest.mark.parametrize(
    ("space", "words", "varied", "said"),
    [
        ("controler", (), (), "--space controler: no such space; did you mean controller?"),
        ("controller", ("controller=manual",), (), "controller=manual has none of its keys (window_s, upper"),
        ("policy", (), (Range("cache.decay", 0.1, 0.2),), "--vary cache.decay: not a key of --space policy"),
        (
            "policy",
            (),
            (Range("policy.betta", 1, 2),),
            "no key of policy=vertumnus; did you mean policy.beta?",
        ),
        (
            "policy",
            ("policy=paper",),
            (Range("policy.queue_estimate", 1, 2),),
            "policy.queue_estimate: no number",
        ),
    ],
)
def test_what_cannot_be_searched_is_told(
    space: str, words: tuple[str, ...], varied: tuple[Range, ...], said: str
) -> None:
    """The flag, what was found, and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        parameters_of(space, varied, a_config(*words))
    assert said in str(caught.value)


def test_whole_numbers_have_equal_shares() -> None:
    """1..4 in quarters of the unit range."""
    parameter = Parameter(Range("controller.persistence", 1, 4), True, 2)
    units = (0.0, 0.24, 0.26, 0.49, 0.51, 0.74, 0.76, 0.999)
    assert [parameter.at(unit) for unit in units] == [1, 1, 2, 2, 3, 3, 4, 4]


@given(st.floats(0, 1, exclude_max=True), st.floats(0.1, 10), st.floats(1.01, 100), st.booleans())
def test_values_stay_between_the_ends(unit: float, low: float, factor: float, log: bool) -> None:
    """Up to the three digits that are kept; in the logarithm the middle is the geometric mean."""
    parameter = Parameter(Range("policy.beta", low, low * factor, log), False, 1.0)
    assert low * 0.994 <= parameter.at(unit) <= low * factor * 1.006
    middle = low * factor**0.5 if log else low * (1 + factor) / 2
    assert parameter.at(0.5) == pytest.approx(middle, rel=6e-3)


def test_values_go_where_their_key_says() -> None:
    """Only the two keys change, and the tree that was given does not."""
    tree = {"policy": {"name": "paper", "beta": 1.0}, "cache": {"decay": 0.6, "manager": {"theta": 3}}}
    changed = with_values(tree, {"policy.beta": 2.0, "cache.manager.theta": 5.0})
    assert changed["policy"] == {"name": "paper", "beta": 2.0}
    assert changed["cache"] == {"decay": 0.6, "manager": {"theta": 5.0}}
    assert tree["policy"] == {"name": "paper", "beta": 1.0} and tree["cache"]["manager"] == {"theta": 3}
