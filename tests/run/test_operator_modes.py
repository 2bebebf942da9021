"""A run whose operator takes over from the controller, moves workers and hands back, on both backends."""

from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from rich.console import Console

from tests.support.builders import a_profile
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import RunConfig, to_run_config
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import OperatorActed
from vertumnus.domain.orders import CloseTransition
from vertumnus.domain.units import SECOND
from vertumnus.policy.reconfig.config import ScriptedAction, ThresholdsController
from vertumnus.run.asked import Asked
from vertumnus.run.execute import execute


def a_config(*words: str) -> RunConfig:
    """The config of the tool-agent experiment with *words*."""
    with hydra_configs():
        return to_run_config(plain_tree(composed(("+experiment=tool_agent", *words))))


def test_a_simulated_controller_goes_on_from_a_split_by_hand(tmp_path: Path) -> None:
    """Under MANUAL nothing but the wish is done; from AUTO on the controller splits what it finds."""
    script = "[{at_s: 0, action: manual}, {at_s: 6, action: split, workers: [0x4]}, {at_s: 21, action: auto}]"
    config = a_config(
        *("backend=sim", "workload.requests=1500", f"runs_dir={tmp_path}", f"controller.script={script}"),
        *("controller=thresholds", "controller.persistence=1", "controller.cooldown_windows=0"),
        *("controller.window_s=5", "controller.upper=0.02", "controller.lower=0.01"),
    )
    outcome = execute(config, Asked(), Console(file=StringIO()))
    run = tmp_path / outcome.run_id
    moves = pq.read_table(run / "reconfigs.parquet").to_pylist()
    assert [move["by"] for move in moves[:2]] == ["script", "controller"]
    assert moves[1]["t_ns"] == 25_000_000_000
    windows = pq.read_table(run / "windows.parquet").to_pylist()
    assert {window["signal"] for window in windows[:5]} == {"split"}
    assert [bool(window["action"]) for window in windows[:5]] == [False] * 4 + [True]
    assert windows[4]["composition"] == "6 x CP2 + 7 x CP4"
    assert windows[3]["reason"].endswith("is left, the mode is manual")


def test_a_mode_without_a_controller_is_refused_before_the_run() -> None:
    """A script that hands over to nobody is a mistake in the config."""
    problem = r"controller\.script\[0\]\.action: found auto, but controller=manual has no controller"
    with pytest.raises(ConfigError, match=problem):
        a_config("backend=sim", "controller.script=[{at_s: 1, action: auto}]")


def a_live_config() -> RunConfig:
    """Two nano ranks, a merge by hand at the start, and a controller that splits at any load when it may."""
    merge = ScriptedAction(at_s=0.0, action="merge", workers=("0x1", "1x1"))
    controller = ThresholdsController(
        window_s=0.25,
        persistence=1,
        cooldown_windows=0,
        upper=0.02,
        lower=0.0,
        script=(ScriptedAction(at_s=0.0, action="manual"), merge),
    )
    config = a_config("model=nano", "cluster.gpus=2", "cluster.composition={1: 2, 2: 0}")
    return replace(config, controller=controller)


@pytest.mark.live
def test_a_live_controller_goes_on_from_a_merge_by_hand(tmp_path: Path) -> None:
    """Two ranks merged by hand under MANUAL are split by the controller after AUTO; replay is exact."""
    from tests.support.live_stack import InOrder, live_stack

    pair, handed_back = CpGroup(0, 2), OperatorActed(0, 2, "test", "auto")
    asked: list[OperatorActed] = []
    with live_stack(a_live_config(), tmp_path, replace(a_profile(), capacity={1: 0.5, 2: 0.5})) as stack:

        def hand_back(engine, pool, _loop) -> bool:
            """Ask for AUTO once the ranks are merged; requests arrive until they are split."""
            is_merged = pair in pool.control.pool.workers
            if is_merged and not asked:
                asked.append(handed_back)
                engine.post(handed_back)
            return is_merged or not asked

        served = stack.serve("modes", hand_back, script=InOrder(len(stack.prompts), gap_ns=SECOND // 20))
    told = served.bodies(OperatorActed, CloseTransition)
    kinds = [body.kind if isinstance(body, CloseTransition) else body.action for body in told]
    assert kinds == ["manual", "merge", "merge", "auto", "split"]
    assert [body.sources for body in told if isinstance(body, CloseTransition)] == [pair.halves, (pair,)]
