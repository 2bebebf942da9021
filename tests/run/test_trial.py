"""Trials leave nothing behind, and are the run that a recorded one would be."""

from io import StringIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.domain.errors import ConfigError
from vertumnus.run.asked import Asked
from vertumnus.run.simulated import simulate
from vertumnus.run.trial import served
from vertumnus.sim.config import SimConfig

MOVE = "controller.script=[{at_s: 4, action: split, workers: [16x8]}]"


@pytest.mark.parametrize(
    "words",
    [
        (
            "controller=what_if",
            "controller.window_s=4",
            "controller.replay_requests=20",
            "controller.replay_s=10",
        ),
        ("controller=manual", MOVE),
        ("controller=what_if", "controller.window_s=4", "controller.replay_s=10", "arrival.patience_s=1.5"),
        ("controller=thresholds", "controller.window_s=5", "initial=other_seed"),
    ],
)
def test_a_trial_is_the_run_without_its_records(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Every request's TTFT, worker and hit, with forecasts, scripted moves and a chosen composition."""
    short = ("+experiment=reconfigure", "workload.requests=120", f"runs_dir={tmp_path}", *words)
    with hydra_configs():
        config = to_run_config(plain_tree(composed(short)))
    trial = served(config)
    assert list(tmp_path.iterdir()) == []
    assert isinstance(config.backend, SimConfig)
    recorded = simulate(config, config.backend, Asked(), Console(file=StringIO()))
    rows = pq.read_table(recorded.run.table("requests")).to_pylist()
    assert len(rows) == len(trial) == 120
    assert [row["ttft_s"] for row in rows] == [
        None if each.ttft_ns is None else each.ttft_ns / 1e9 for each in trial
    ]
    assert [row["status"] for row in rows] == [each.status for each in trial]
    assert any(each.status == "cancelled" for each in trial) == (config.arrival.patience_s is not None)
    assert [row["worker_id"] for row in rows] == [str(each.worker) for each in trial]
    assert [row["cached_tokens"] for row in rows] == [each.cached_tokens for each in trial]


def test_ranks_have_no_trial() -> None:
    """A live config is refused before anything starts."""
    with hydra_configs():
        live = to_run_config(plain_tree(composed(("+experiment=tool_agent",))))
    with pytest.raises(ConfigError, match="backend: found live, but a trial is simulated"):
        served(live)
