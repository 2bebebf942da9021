"""Tunes cells of the routing grid: ``python -m vertumnus_profiling.tune.cells [CELL ...]``.

What it writes is what ``+experiment=routing_grid`` takes: `cell_file` says where, `cell_search` how.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import vertumnus
from vertumnus.commandline.exit_codes import OK, exit_code_of
from vertumnus.commandline.hydra_configs import composed, hydra_configs, plain_tree
from vertumnus.commandline.listing import entries
from vertumnus.commandline.overrides import for_hydra, job_words
from vertumnus.commandline.parser import Parser
from vertumnus.config import did_you_mean
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.records.provenance import git_revision
from vertumnus.run.interrupts import one_interrupt
from vertumnus_profiling.tune import trials
from vertumnus_profiling.tune.cell_file import FOLDER, entry, read_entries, write_entries
from vertumnus_profiling.tune.cell_search import Cell, tune_cell
from vertumnus_profiling.tune.objectives import Requests
from vertumnus_profiling.tune.slices import Slice, read_slices
from vertumnus_profiling.tune.trials import Runners

PROGRAM = "python -m vertumnus_profiling.tune.cells"
LEVELS = ("lowest", "low", "middle", "high", "highest")
JUDGED = range(1, 6)
"""The seeds of the experiment's sweep; nothing is tuned on them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Tune what *argv* (sys.argv without the program) asks for and return the exit code."""
    return exit_code_of(
        _tune, argv, "interrupted; finished rates are kept, start again to go on with the others"
    )


def _read(words: Sequence[str]) -> argparse.Namespace:
    parser = Parser(prog=PROGRAM, description=__doc__)
    parser.add_argument("cells", nargs="*", metavar="CELL", help="cells of the grid; default all")
    parser.add_argument(
        "--level", action="append", metavar="NAME", help=f"of {', '.join(LEVELS)}; repeatable; default all"
    )
    parser.add_argument(
        "--train", default="seed:101..103", metavar="SLICES", help="seeds to tune on; default seed:101..103"
    )
    parser.add_argument(
        "--requests", type=int, metavar="N", help="of each seed, the first N; default as many as are judged"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="simulations at a time"
    )
    parser.add_argument("--force", action="store_true", help="tune again what the files hold already")
    read = parser.parse_args(list(words))
    known = [each.name for each in entries("cell")]
    read.cells, read.levels = read.cells or known, read.level or LEVELS
    read.slices = read_slices(read.train, "--train")
    if problems := list(_problems(read, known)):
        raise ConfigError(*problems)
    return read


def _problems(read: argparse.Namespace, known: Sequence[str]) -> Iterator[str]:
    for cell in read.cells:
        if cell not in known:
            yield f"{cell}: no such cell{did_you_mean(cell, known)}"
    for level in read.levels:
        if level not in LEVELS:
            yield f"--level {level}: no such level{did_you_mean(level, LEVELS)}"
    for flag in ("jobs", "requests"):
        value = getattr(read, flag)
        if value is not None and value < 1:
            yield f"--{flag}: found {value}, must be at least 1"
    judged = [str(each) for each in read.slices if each.seed is None or each.seed in JUDGED]
    if judged:
        yield f"--train: found {', '.join(judged)}, must be seeds that the grid is not judged on"


@one_interrupt()
def _tune(words: Sequence[str]) -> int:
    read = _read(words)
    with Runners(read.jobs, trials.measured) as runners:
        for name in read.cells:
            path = FOLDER / f"{name}.yaml"
            kept = read_entries(path)
            for level in read.levels:
                if level not in kept or read.force:
                    kept[level] = _tuned(_cell(name, level, read.requests), read.slices, runners)
                    _tell(name, level, kept[level])
                    write_entries(path, _in_order(kept), f"{PROGRAM} {shlex.quote(name)}")
    return OK


def _tuned(cell: Cell, train: Sequence[Slice], runners: Runners[Requests]) -> dict[str, Any]:
    return entry(tune_cell(cell, train, runners), _made(cell, train))


def _tell(name: str, level: str, found: dict[str, Any]) -> None:
    costs = ", ".join(f"{policy} {ttft_s:.3f} s" for policy, ttft_s in found["training_ttft_s"].items())
    print(f"{name} {level}: {found['composition']}, {costs}", file=sys.stderr)


def _cell(name: str, level: str, requests: int | None) -> Cell:
    policies = ("policy=vertumnus",), ("policy=paper",), ("policy=static", "policy.length_threshold=8192")
    return Cell(*(_tree(name, level, requests, words) for words in policies))


def _tree(name: str, level: str, requests: int | None, words: Sequence[str]) -> dict[str, Any]:
    pool = "cluster.composition={4:10}"  # to begin with: there may be no entry for this level yet
    asked = ["+experiment=routing_grid", f"cell={name}", f"grid.level={level}", pool, *words]
    asked += [] if requests is None else [f"workload.requests={requests}"]
    with hydra_configs() as loader:
        (job,) = job_words(asked, loader, multirun=False)
        return plain_tree(composed(for_hydra(job, loader)))


def _in_order(kept: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {level: kept[level] for level in LEVELS if level in kept}


def _made(cell: Cell, train: Sequence[Slice]) -> str:
    requests, revision = cell.paper["workload"]["requests"], git_revision()
    told = [datetime.now(UTC).date().isoformat(), f"vertumnus {vertumnus.__version__}"]
    told += [f"git {revision[:12]}"] if revision else []
    told += [
        f"{counted(requests, 'request')} of {train[0]}" if requests else str(train[0]),
        *map(str, train[1:]),
    ]
    return ", ".join(told)


if __name__ == "__main__":
    sys.exit(main())
