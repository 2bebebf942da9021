"""What was asked of the verb ``figures``."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from vertumnus.config import did_you_mean
from vertumnus.domain.errors import ConfigError
from vertumnus.records.run_row import canonical_json
from vertumnus.report.paper.catalogue import ENTRIES, NAMES, Entry


def chosen(names: Sequence[str]) -> list[Entry]:
    """Return the entries of *names* in the paper's order, or all. Raises ConfigError naming unknown ones."""
    unknown = [
        f"figures: {name}: no such table or figure{did_you_mean(name, NAMES)}"
        for name in names
        if not any(entry.is_named(name) for entry in ENTRIES)
    ]
    if unknown:
        raise ConfigError(*unknown)
    return [entry for entry in ENTRIES if not names or any(map(entry.is_named, names))]


class Wanted(NamedTuple):
    """Tables and figures, and what was typed for their runs."""

    entries: Sequence[Entry]
    overrides: Sequence[str]
    runs_dir: Path
    only: Sequence[str]
    """KEY=a,b of the sweeps."""
    is_full: bool
    """Whether all that the sweeps declare is run, not only what the entries need."""
    is_simulated: bool
    """Whether executed runs are left out."""

    @property
    def text(self) -> str:
        """Return all of it as one line, with the folder that relative paths begin in."""
        entries = [entry.name for entry in self.entries]
        folders = [os.getcwd(), str(self.runs_dir)]
        return canonical_json([entries, self.overrides, folders, self.only, self.is_full, self.is_simulated])
