"""How to get what is not installed."""

import sys
from pathlib import Path

import pytest

from vertumnus.domain.extras import installing


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("/opt/env/bin/python", "/opt/env/bin/python -m pip install 'vertumnus[figures]'"),
        ("{here}/.venv/bin/python", ".venv/bin/python -m pip install 'vertumnus[figures]'"),
        ("/opt/my env/bin/python", "'/opt/my env/bin/python' -m pip install 'vertumnus[figures]'"),
    ],
)
def test_the_environment_that_runs_is_the_one_to_add_to(
    python: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As can be typed where one stands: its interpreter's pip, whichever pip comes first on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "executable", python.format(here=tmp_path))
    assert installing("figures") == said
