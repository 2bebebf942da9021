"""What tests of the command line type, and the command as a process."""

import os
import subprocess
import sys
from pathlib import Path

SIM = ("+experiment=tool_agent", "backend=sim")


def vertumnus(*words: str, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own, in the folder *cwd*."""
    command = [sys.executable, "-m", "vertumnus", *words]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
