"""Simulated runs for all tests of the console."""

import pytest

from vertumnus.records.run_dir import RunDir
from vertumnus_console.recording import recorded

WORDS = ("+experiment=tool_agent", "backend=sim", "workload.requests=200")


@pytest.fixture(scope="session")
def recorded_run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A finished run of 200 requests on 40 simulated GPUs."""
    return recorded(tmp_path_factory.mktemp("runs"), WORDS)


@pytest.fixture(scope="session")
def other_run(recorded_run: RunDir) -> RunDir:
    """The same requests under the published policy, beside the first run."""
    return recorded(recorded_run.path.parent, (*WORDS, "policy=paper"))
