"""How to get what the base install leaves out."""

import sys
from pathlib import Path
from shlex import quote


def installing(extra: str) -> str:
    """Return the command that adds *extra* to the environment that runs; another one has no vertumnus."""
    python = Path(sys.executable)
    if python.is_relative_to(Path.cwd()):
        python = python.relative_to(Path.cwd())
    return f"{quote(str(python))} -m pip install 'vertumnus[{extra}]'"
