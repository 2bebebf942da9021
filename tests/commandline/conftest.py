"""An empty folder to stand in, and a run that only notes its config."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from vertumnus import sweep
from vertumnus.commandline import jobs
from vertumnus.commandline.exit_codes import OK
from vertumnus.config import RunConfig
from vertumnus.sweep import Ending, Job, Sweep


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[RunConfig]:
    """Put a run that only notes its config in the place of the real one."""
    configs: list[RunConfig] = []

    def note(config: RunConfig, words: Sequence[str]) -> int:
        configs.append(config)
        return OK

    def note_all(jobs: Sequence[Job], words: Sequence[str], **flags: object) -> Sweep:
        configs.extend(job.config for job in jobs)
        return Sweep(
            "trial-0", {n: Ending("finished", None, "VALID") for n in range(1, len(jobs) + 1)}, False
        )

    monkeypatch.setattr(jobs, "execute", note)
    monkeypatch.setattr(sweep, "run_sweep", note_all)
    return configs
