"""Several processes that finish runs in one folder: ``python -m tests.support.concurrent_runs FOLDER``."""

import sys
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

from tests.support.recorded import a_run, a_ulid
from vertumnus.report.store import rebuild_catalog

PROCESSES, RUNS_EACH = 8, 2
RUN_IDS = [[a_ulid(100 * process + number) for number in range(RUNS_EACH)] for process in range(PROCESSES)]


def finish_runs(runs_dir: Path, run_ids: Sequence[str]) -> None:
    """Finish one small run after the other, and rebuild the catalog after each."""
    for run_id in run_ids:
        a_run(runs_dir, run_id)
        rebuild_catalog(runs_dir)


def main(runs_dir: Path) -> int:
    """Let all processes finish their runs at once; return how many of them failed."""
    fork = get_context("fork")  # no thread runs yet here, and the imports are paid once
    writers = [fork.Process(target=finish_runs, args=(runs_dir, run_ids)) for run_ids in RUN_IDS]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    return sum(writer.exitcode != 0 for writer in writers)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
