"""The programs beside this package that a verb stands for: it imports nothing of them."""

import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NoReturn

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.extras import installing


def become(module: str, words: Sequence[str]) -> NoReturn:
    """Turn this process into ``python -m module words``: signals and the exit code are then its own.

    Raises ConfigError when *module* is not installed.
    """
    if find_spec(module.partition(".")[0]) is None:
        raise ConfigError(f"{module}: not installed beside vertumnus; {installing('live')}")
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: what lies in the current folder must not pass for a module
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, *words])
