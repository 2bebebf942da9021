"""Runs to look at: simulated here, for benches and pictures."""

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from rich.console import Console

from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.config import to_run_config
from vertumnus.records.run_dir import RunDir
from vertumnus.run.asked import Asked
from vertumnus.run.execute import execute


def recorded(
    runs_dir: Path, words: tuple[str, ...], tell: Callable[[int, int], None] | None = None
) -> RunDir:
    """Carry out the run that the overrides *words* ask for, in silence, and return it.

    *tell* is called now and then with the ended and the planned requests.
    """
    words = (*words, f"runs_dir={runs_dir}")
    with hydra_configs():
        config = to_run_config(plain_tree(composed(words)))
    with redirect_stdout(StringIO()):
        outcome = execute(config, Asked(words, tell=tell), Console(file=StringIO()))
    return RunDir(runs_dir / outcome.run_id)
