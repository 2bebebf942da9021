"""Tuning a cell of the routing grid: what is searched, what is written, and what the grid takes of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.policy.config import PaperPolicy, StaticPolicy
from vertumnus_profiling.tune import trials
from vertumnus_profiling.tune.cells import main
from vertumnus_profiling.tune.objectives import Requests

FILE = Path("conf", "cell", "tuned", "qwen_tool_agent.yaml")
HIGHEST = ("qwen_tool_agent", "--level", "highest", "--jobs", "1")


class Made:
    """Stands for the simulator: best with 12 x CP2, beta 3, a threshold of 4,096."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(self, tree: dict[str, Any]) -> Requests:
        self.asked.append(tree)
        policy = tree["policy"]
        miss = abs(tree["cluster"]["composition"][2] - 12) / 10
        if policy["name"] == "vertumnus":
            return Requests(np.full(8, 0.3 + miss), np.ones(8), np.ones(8))
        if policy["name"] == "paper":
            miss += abs(policy["beta"] - 3.0)
        else:
            miss += abs(np.log2(policy["length_threshold"] / 4_096))
        return Requests(np.full(8, 0.5 + miss), np.ones(8), np.ones(8))


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Stand in an empty folder, with trials that take no time."""
    monkeypatch.chdir(tmp_path)
    stand_in = Made()
    monkeypatch.setattr(trials, "measured", stand_in)
    return stand_in


def config_of(*words: str) -> Any:
    """Return the config of a job of the grid at the highest rate."""
    with hydra_configs():
        return to_run_config(plain_tree(composed(("+experiment=routing_grid", *words))))


def test_a_cell_is_tuned_and_the_grid_takes_it(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """The pool for vertumnus, paper's weights and static's threshold on it; policies refer to the file."""
    assert main(HIGHEST) == 0
    entry = yaml.safe_load(FILE.read_text())["highest"]
    assert entry["composition"] == {2: 12, 4: 4}
    assert 2.0 < entry["paper"]["beta"] < 4.0 and 2_048 <= entry["static"]["length_threshold"] <= 8_192
    assert entry["training_ttft_s"]["paper_untuned"] == 2.5 > entry["training_ttft_s"]["paper"]
    assert {tree["seed"] for tree in made.asked} == {101, 102, 103}
    assert {tree["arrival"]["rate"] for tree in made.asked} == {60}
    paper, static = config_of("policy=paper_tuned"), config_of("policy=static_tuned")
    assert paper.policy == PaperPolicy(**entry["paper"])
    assert static.policy == StaticPolicy(**entry["static"])
    assert paper.cluster.initial_composition().counts() == {2: 12, 4: 4} == static.cluster.composition
    assert (
        "qwen_tool_agent highest: {2: 12, 4: 4}, vertumnus 0.300 s, paper_untuned 2.500 s"
        in capsys.readouterr().err
    )


def test_what_is_tuned_is_kept(made: Made) -> None:
    """Another rate is added to the file; --force tunes again."""
    assert main(HIGHEST) == 0
    once = len(made.asked)
    assert main(HIGHEST) == 0 and len(made.asked) == once
    assert main(("qwen_tool_agent", "--level", "low", "--jobs", "1")) == 0
    assert list(yaml.safe_load(FILE.read_text())) == ["low", "highest"]
    assert main((*HIGHEST, "--force")) == 0 and len(made.asked) == 3 * once
    assert FILE.read_text().startswith("# ") and "seed 101" in FILE.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("qwen_tool_agnet",), "qwen_tool_agnet: no such cell; did you mean qwen_tool_agent?"),
        (("--level", "top"), "--level top: no such level"),
        (("--train", "seed:5..7"), "--train: found seed 5, must be seeds that the grid is not judged on"),
        (("--jobs", "0"), "--jobs: found 0, must be at least 1"),
    ],
)
def test_bad_input_is_told(
    words: tuple[str, ...], said: str, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was tried and nothing is written."""
    assert main(words) == 2
    assert said in capsys.readouterr().err
    assert made.asked == [] and not FILE.parent.exists()
