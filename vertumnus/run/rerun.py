"""A stored run once more: the same configuration and seed, and whether the same came of it.

A simulated run that is repeated by the same code leaves the same log and tables to the byte, whatever the
machine does meanwhile; only the row of the run itself differs, which has its id and wall times. What
operators did in a run that kept to the wall clock is not repeated.
"""

import sys
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from vertumnus.config import RunConfig
from vertumnus.domain.codec import Record
from vertumnus.domain.facts import OperatorActed
from vertumnus.records.columns import TABLES
from vertumnus.records.log import GrowingLog, read_log
from vertumnus.records.run_dir import RunDir
from vertumnus.report.drawing import console_for
from vertumnus.report.store import rebuild_catalog
from vertumnus.run.asked import Asked
from vertumnus.run.execute import serve
from vertumnus.run.interrupts import one_interrupt
from vertumnus.run.pool import stored_config
from vertumnus.run.session import SCRIPT, Recorded
from vertumnus.serving.replay import Difference

OF_THE_RUN_ITSELF = "runs"
"""The table that is never the same twice."""


class Likeness(NamedTuple):
    """How a run and its repetition compare."""

    records: int
    """Of the first run's log that the second one's shares from the start on."""
    difference: Difference | None
    """The first record that differs: as recorded first, and again."""
    tables: tuple[str, ...]
    """Those whose bytes differ."""

    @property
    def is_identical(self) -> bool:
        """Whether log and tables are the same."""
        return self.difference is None and not self.tables


def run_again(run: RunDir, runs_dir: Path) -> Recorded:
    """Run the configuration of *run* again, with results below *runs_dir*; narration goes to stderr.

    Raises ConfigError before anything starts when it cannot be run.
    """
    config, start = config_of(run, runs_dir), run.start()
    with one_interrupt():
        recorded = serve(config, Asked(start.overrides if start else ()), console_for(sys.stderr))
        rebuild_catalog(runs_dir)
    return recorded


def config_of(run: RunDir, runs_dir: Path) -> RunConfig:
    """Return the configuration of *run* with its results going to *runs_dir*.

    A first composition that it chose out of a slice is kept, not chosen again. Raises ConfigError when there
    is no log, or when this version has other keys.
    """
    log = GrowingLog(run.log)
    log.close()
    return stored_config({**log.header.config, "runs_dir": str(runs_dir)})


def operators_actions(run: RunDir) -> int:
    """Return how many actions of operators the log of *run* holds, a script's left out."""
    return sum(
        isinstance(record.body, OperatorActed) and record.body.who != SCRIPT
        for record in read_log(run.log).records
    )


def likeness(run: RunDir, again: RunDir) -> Likeness:
    """Compare the logs and the tables of two runs. Raises ConfigError when a log cannot be read."""
    same, difference = _first_difference(read_log(run.log).records, read_log(again.log).records)
    tables = tuple(
        name
        for name in TABLES
        if name != OF_THE_RUN_ITSELF and _bytes(run.table(name)) != _bytes(again.table(name))
    )
    return Likeness(same, difference, tables)


def _first_difference(ours: Iterable[Record], again: Iterable[Record]) -> tuple[int, Difference | None]:
    place = -1
    for place, (one, other) in enumerate(zip_longest(ours, again)):
        if one != other:
            return place, Difference(place, one, other)
    return place + 1, None


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None
