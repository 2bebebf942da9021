"""What is compared follows from what differs, and from who served the same arrivals."""

from typing import Any

import pytest

from vertumnus.domain.errors import ConfigError
from vertumnus.report.compare.axes import Axes, label, split
from vertumnus.report.compare.members import Member, words_by_key


def a_member(*words: str, arrivals: str = "x", execution: str = "simulated", **row: Any) -> Member:
    """A run of *words*; arrivals are the same unless told otherwise."""
    typed = words_by_key(words)
    config = {"policy": {"name": row.get("policy", "paper"), "beta": 1.0}, "seed": int(typed.get("seed", 0))}
    row = {"execution": execution, "code_hash": "c", "policy": "paper", "composition": "5 x CP8", **row}
    return Member("RUN", typed, config["seed"], arrivals, config, row)  # type: ignore[arg-type]


def test_what_shares_arrivals_is_compared_and_a_rate_makes_scenarios() -> None:
    """2 policies x 2 rates x 2 seeds: policies meet at each rate."""
    runs = [
        a_member(
            "+experiment=x",
            f"policy={policy}",
            f"arrival.rate={rate}",
            f"seed={seed}",
            arrivals=f"{rate} {seed}",
        )
        for policy in ("paper", "homo")
        for rate in (3, 4)
        for seed in (0, 1)
    ]
    axes = split(runs)
    assert axes == Axes(("policy",), ("arrival.rate",))
    assert label(runs[0], axes.compared) == "policy=paper"
    assert label(runs[0], axes.scenario) == "arrival.rate=3"


def test_groups_need_not_be_a_product() -> None:
    """An adaptive run beside fixed compositions: a key that a run was not given is not in its name."""
    runs = [
        a_member("controller=brisk"),
        a_member("controller=off", "cluster.composition={4:10}"),
        a_member("controller=off", "cluster.composition={8:5}"),
    ]
    axes = split(runs)
    assert axes == Axes(("controller", "cluster.composition"), ())
    assert [label(run, axes.compared) for run in runs] == [
        "controller=brisk",
        "controller=off cluster.composition={4:10}",
        "controller=off cluster.composition={8:5}",
    ]


def test_an_axis_can_be_asked_for() -> None:
    """A column of the runs table or a key of the config, though nobody typed it; the rest sets the scene."""
    runs = [a_member("policy.beta=1", policy="paper"), a_member("policy.beta=2", policy="homo")]
    assert split(runs, ["policy"]) == Axes(("policy",), ("policy.beta",))
    assert label(runs[1], ["policy"]) == "policy=homo"
    assert label(runs[0], ["policy.beta", "composition"]) == "policy.beta=1 composition=5 x CP8"


def test_other_code_is_an_axis() -> None:
    """Two runs of one configuration before and after a change."""
    assert split([a_member(code_hash="a"), a_member(code_hash="b")]).compared == ("code_hash",)


@pytest.mark.parametrize(
    ("runs", "by", "said"),
    [
        ([], None, "no finished VALID run to compare"),
        (
            [a_member("seed=0"), a_member("seed=1", arrivals="y")],
            None,
            "the 2 runs differ in nothing but the seed",
        ),
        (
            [a_member("arrival.rate=1"), a_member("arrival.rate=2", arrivals="y")],
            None,
            "no two runs served the same arrivals; what differs: arrival.rate",
        ),
        (
            [a_member("policy=paper"), a_member("policy=homo", execution="executed")],
            None,
            "no two runs served the same arrivals; what differs: policy",
        ),
        (
            [a_member("policy=paper", "slo=a"), a_member("policy=homo", "slo=a")],
            ["slo"],
            "--by slo: all runs have slo=a; what differs: policy",
        ),
        (
            [a_member("policy=paper"), a_member("policy=homo")],
            ["polcy"],
            "--by polcy: no run says anything of it; what differs: policy",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(runs: list[Member], by: list[str] | None, said: str) -> None:
    """With what there would be to compare."""
    with pytest.raises(ConfigError) as caught:
        split(runs, by)
    assert said in caught.value.problems[0]
