"""One simulated run for all tests of the console."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.records.run_dir import RunDir
from vertumnus.run.asked import Asked
from vertumnus.run.execute import execute

WORDS = ("+experiment=tool_agent", "backend=sim", "workload.requests=200")


@pytest.fixture(scope="session")
def recorded_run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A finished run of 200 requests on 40 simulated GPUs."""
    runs_dir = tmp_path_factory.mktemp("runs")
    with hydra_configs():
        config = to_run_config(plain_tree(composed((*WORDS, f"runs_dir={runs_dir}"))))
    outcome = execute(config, Asked(WORDS), Console(file=StringIO()))
    return RunDir(Path(runs_dir) / outcome.run_id)
