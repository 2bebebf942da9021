"""A rank whose coordinator is gone ends before it has imported what takes seconds."""

import os
import subprocess
import sys

from vertumnus.live.launch import RUN_VARIABLE

START = """
import sys
from vertumnus.live import rank
try:
    rank.main()
except SystemExit as end:
    print(end.code, "torch" in sys.modules)
"""


def test_an_orphan_ends_before_it_imports_torch() -> None:
    """It was started by a process that is not its parent any more: status 1, and no torch."""
    who = ["--pool", "prefill", "--rank", "0", "--incarnation", "0"]
    where = ["--endpoint", "ipc:///nowhere", "--parent", "0"]
    done = subprocess.run(
        [sys.executable, "-c", START, *who, *where],
        env={**os.environ, RUN_VARIABLE: "secret"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.stdout, done.stderr) == ("1 False\n", "")
