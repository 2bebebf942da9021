"""No parameter that an operator can tune takes a number that a run could not go on with."""

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.units import INT64
from vertumnus.policy.config import PaperPolicy, PolicyConfig, StaticPolicy, VertumnusPolicy
from vertumnus.policy.correction import CorrectionConfig
from vertumnus.policy.reconfig.config import ThresholdsController, WhatIfController
from vertumnus.policy.tuning import SAFE, Tuning

PARTS: dict[str, tuple[Any, ...]] = {
    "policy": (PaperPolicy(), VertumnusPolicy(), StaticPolicy(length_threshold=100)),
    "correction": (CorrectionConfig(enabled=True),),
    "controller": (ThresholdsController(), WhatIfController()),
}
NUMBERS = (1e308, -1e308, 1e300, float("inf"), float("nan"), 10**19, 10**20, -(10**20), 2**53 + 1)


class Held:
    """A part of a control plane that only keeps its config."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def retune(self, config: Any) -> None:
        self.config = config


def tunings() -> Iterator[tuple[str, Any]]:
    """Each parameter of each config that has it."""
    for part, configs in PARTS.items():
        for config in configs:
            yield from ((f"{part}.{name}", config) for name in SAFE[part] if hasattr(config, name))


def test_every_parameter_and_every_config_that_has_one_is_tried() -> None:
    """Nothing that is safe to change escapes the numbers below."""
    assert {setting for setting, _ in tunings()} == {f"{part}.{name}" for part in SAFE for name in SAFE[part]}
    tunable = {kind for kind in get_args(PolicyConfig) if {*SAFE["policy"]} & {*kind.__struct_fields__}}
    assert tunable == {type(config) for config in PARTS["policy"]}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(("setting", "config"), list(tunings()))
def test_a_number_beyond_all_runs_is_refused(setting, config, number) -> None:
    """By name and as found; the parameter keeps its value, and what it may have fits a log's integers."""
    part, _, name = setting.partition(".")
    held = Held(config)
    tuning = Tuning()
    tuning.add(part, held)
    with pytest.raises(ConfigError, match=re.escape(f"tune {setting}: found {number}, must be within")):
        tuning.change(setting, number, "ann")
    assert held.config is config and int(getattr(config, name)) in INT64
