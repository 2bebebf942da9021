"""From a config to a summary: pick the backend, run, show what was measured."""

import traceback
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from vertumnus.config import RunConfig, plain_config
from vertumnus.domain.errors import VertumnusError
from vertumnus.live.plan import require_packages
from vertumnus.records.run_row import config_hash
from vertumnus.report.drawing import console_for
from vertumnus.report.run_report import load_report
from vertumnus.report.store import rebuild_catalog
from vertumnus.report.summary import print_summary
from vertumnus.run.asked import Asked
from vertumnus.run.interrupts import one_interrupt
from vertumnus.run.session import Recorded
from vertumnus.run.simulated import simulate
from vertumnus.sim.config import SimConfig


class Outcome(NamedTuple):
    """How a run ended."""

    run_id: str
    status: str
    verdict: str


def execute(config: RunConfig, asked: Asked, console: Console) -> Outcome:
    """Run *config*; narration goes to *console*, the summary to stdout.

    Raises ConfigError before anything starts when the config cannot be run, UnendedRun or CatalogError when
    the disk has no room for what it leaves.
    """
    with one_interrupt():
        recorded = serve(config, asked, console)
        try:
            rebuild_catalog(Path(config.runs_dir))
        finally:  # nothing that is shown needs the catalog
            print_summary(load_report(Path(config.runs_dir), recorded.run.run_id), console_for())
            if recorded.failure is not None:
                _tell_failure(recorded.failure, console)
    return Outcome(recorded.run.run_id, recorded.end.status, recorded.end.verdict)


def serve(config: RunConfig, asked: Asked, console: Console) -> Recorded:
    """Run *config* on its backend and leave its folder; raises ConfigError before anything starts."""
    asked = asked._replace(config_hash=config_hash(plain_config(config)))
    if isinstance(config.backend, SimConfig):
        return simulate(config, config.backend, asked, console)
    require_packages()
    from vertumnus.run.live import run_live  # here, so that simulated runs never import torch

    return run_live(config, config.backend, asked, console)


def _tell_failure(failure: BaseException, console: Console) -> None:
    if isinstance(failure, KeyboardInterrupt | VertumnusError):
        return  # the summary says it
    console.print("".join(traceback.format_exception(failure)), markup=False, highlight=False)
