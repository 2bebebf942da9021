"""A what_if run on two executing ranks: forecasts come from a process beside them, and the log replays."""

from io import StringIO

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import SECOND
from vertumnus.records.run_dir import find_run
from vertumnus.run.asked import Asked
from vertumnus.run.audit import audit_run
from vertumnus.run.execute import execute
from vertumnus.run.preview import preview_run

pytestmark = pytest.mark.live

WORDS = (
    "+experiment=tool_agent",
    "model=nano",
    "cluster.gpus=2",
    "cluster.degrees=[1,2]",
    "cluster.composition={1: 2, 2: 0}",
    "workload.requests=60",
    # the ranks are idle most of the time: whatever the machine, a forecast has cores and seconds
    "arrival.load=null",
    "arrival.rate=8.0",
    "controller=what_if",
    "controller.window_s=0.5",
    "controller.replay_s=2.0",
)


def test_a_live_what_if_run(tmp_path) -> None:
    """Every request is served, forecasts are answered some time after they were asked, replays are exact."""
    with hydra_configs():
        config = to_run_config(plain_tree(composed((*WORDS, f"runs_dir={tmp_path}"))))
    outcome = execute(config, Asked(WORDS), Console(file=StringIO()))
    assert (outcome.status, outcome.verdict) == ("finished", "VALID")
    run = find_run(tmp_path, outcome.run_id).run
    rows = pq.read_table(run.table("forecasts")).to_pylist()
    answered = [row for row in rows if row["status"] == "answered"]
    assert answered and all(row["answer_s"] > 0.0 for row in answered)
    assert not [row["reason"] for row in rows if row["status"] == "failed"]
    assert audit_run(run).is_clean
    early = preview_run(run, ("merge", (CpGroup(0, 1), CpGroup(1, 1))), 400_000_000, 60 * SECOND)
    assert early.backend == "live" and str(early.composition) == "2 x CP1"
    assert early.preview.moved.switch_ns is not None and early.preview.span_ns == 400_000_000
