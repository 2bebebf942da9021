"""Keys that were typed and that nothing reads are told; the others are not."""

import msgspec
import pytest
from msgspec import structs

from tests.test_config import tree
from vertumnus.config import RunConfig, to_run_config, without_effect
from vertumnus.config.effects import _SWITCHED

OFF = {"inter": False, "intra": False, "reclaim": False}


def a_config(**changes: object) -> RunConfig:
    """Return a small config with *changes*."""
    return to_run_config(tree(**changes))


@pytest.mark.parametrize(
    ("changes", "typed", "said"),
    [
        (
            {"cache": {"manager": {**OFF, "theta_inter_s": 1}}},
            "cache.manager.theta_inter_s",
            "found 1.0, moves no copy with cache.manager.inter=false",
        ),
        (
            {"cache": {"manager": OFF}},
            "cache.manager.rank_by",
            "found count, moves no copy with cache.manager.inter=false and cache.manager.intra=false",
        ),
        (
            {"admission": {"queue_within": 3}},
            "admission.queue_within",
            "found 3.0, has no effect with admission.enabled=false",
        ),
        (
            {"correction": {"enabled": False}},
            "correction.window",
            "found 32, has no effect with correction.enabled=false",
        ),
        (
            {"policy": {"name": "vertumnus", "shortest_first": False}},
            "policy.ageing",
            "found 0.1, has no effect with policy.shortest_first=false",
        ),
        ({}, "arrival.tick_s", "found 3.05, has no effect with arrival.jitter=none"),
    ],
)
def test_a_key_behind_a_switch_that_is_off_is_told(changes: dict[str, object], typed: str, said: str) -> None:
    """With what was found and which switch is off, though it has its default value."""
    assert without_effect([(a_config(**changes), [typed, "seed"])]) == [f"note: {typed}: {said}"]


@pytest.mark.parametrize(
    ("changes", "typed"),
    [
        ({"cache": {"manager": {**OFF, "intra": True}}}, "cache.manager.rank_by"),
        ({"admission": {"enabled": True}}, "admission.queue_within"),
        ({"policy": {"name": "vertumnus"}}, "policy.ageing"),
        ({"arrival": {"rate": 3, "jitter": "uniform_tick"}}, "arrival.tick_s"),
        ({"cache": {"manager": OFF}}, "cache.manager.inter"),
        ({"cache": {"manager": OFF}}, "cache.scan_interval_s"),
    ],
)
def test_a_key_that_is_read_is_not_told(changes: dict[str, object], typed: str) -> None:
    """One switch of several is enough, and switches themselves are always read."""
    assert without_effect([(a_config(**changes), [typed])]) == []


def test_what_was_not_typed_is_not_told() -> None:
    """A file of configs gives every key of its group, whatever is switched on."""
    assert without_effect([(a_config(cache={"manager": {**OFF, "grace_scans": 9}}), ["cache"])]) == []


def test_one_job_that_reads_a_key_is_enough() -> None:
    """A sweep over switch and threshold is meant so; one over the threshold alone is not."""
    off, on = (a_config(admission={"enabled": enabled}) for enabled in (False, True))
    typed = ["admission.window"]
    assert without_effect([(off, typed), (on, typed)]) == []
    assert len(without_effect([(off, typed), (off, typed)])) == 1


def test_every_key_of_the_table_is_one_of_the_config() -> None:
    """A key that is renamed takes its line in the table with it."""
    config = a_config(policy={"name": "vertumnus"})
    for group, keys, switches, _ in _SWITCHED:
        part: object = config
        for name in group.split("."):
            part = getattr(part, name)
        assert isinstance(part, msgspec.Struct)
        assert {*keys, *switches} <= structs.asdict(part).keys()
