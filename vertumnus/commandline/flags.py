"""The flags of a run, and the help text."""

import argparse
from collections.abc import Sequence

from msgspec import Struct

from vertumnus.commandline.parser import Parser, positive

HELP = """\
Adaptive context parallelism for LLM prefill: run it, simulate it, read the results.

usage: vertumnus [key=value ...] [flags]      run one job (Hydra overrides)
       vertumnus VERB [...]                   everything else

  vertumnus +experiment=tool_agent              live, on this machine
  vertumnus +experiment=tool_agent backend=sim  the paper-scale cluster, simulated
  vertumnus +experiment=conversation workload.path=TRACE.jsonl.gz
  vertumnus +experiment=tool_agent backend=sim -m policy=paper,round_robin seed=0,1,2

flags: -m, --multirun   sweep over every key given as a,b,c; jobs that have a VALID run are not run again
       --only KEY=a,b   of a sweep: the jobs that have one of these values; repeatable
       --jobs N         of a sweep at a time; default: the cores, or 1 where runs are executed
       --again          of a sweep: run every job, whatever is there
       --resume SWEEP   go on with a sweep by its id
       --dry-run        print the plan (requests, span, offered load against capacity) and stop
       --cfg job        print the composed config and stop (--resolve fills in ${...})
       --version, -h, --help

verbs: ls [GROUP]       experiments, workloads, models, clusters, policies, ... with their purpose
       profile [key=value ...]  measure prefill times here and keep them for runs; --help says more
       size TRACE [key=value ...]  which composition and policy for a trace; --help says more
       tune [key=value ...]  calibrate thresholds and weights on simulated slices; --help says more
       report, sql, runs  results; vertumnus VERB --help says more
       compare [SWEEP|RUN...]  groups of runs against one another, paired, with intervals
       figures [NAME ...]  the paper's tables and figures, run where needed, as one report
       trace lint|stats|convert|download|capture  trace files; vertumnus trace says more
       console [RUN [RUN]]  watch and operate a live run, replay one that has ended, compare two
       preview split|merge WORKER ...  what a move would do at an instant of a run
       explain [RUN] REQUEST  why a request went to its worker: all candidates, every term, hindsight
       rerun [RUN]      run a stored run's configuration and seed again: the same result?
       audit, salvage  replay a run's log and check its books; make the tables of a killed run

exit:  0 ok, 1 run failed, 2 bad input, 3 finished but INVALID, 130 interrupted
       VERTUMNUS_DEBUG=1 shows the traceback behind a message
"""


class Flags(Struct, frozen=True):
    """What the user typed, taken apart."""

    overrides: tuple[str, ...]
    """Hydra overrides, as typed."""
    multirun: bool
    dry_run: bool
    show_config: bool
    """Print the composed config instead of running."""
    resolve: bool
    """Fill in interpolations in the printed config."""
    jobs: int | None = None
    """Runs of a sweep at a time; None: one for each core, or one where a run is executed."""
    again: bool = False
    """Run the jobs of a sweep that have a VALID run already, too."""
    resume: str | None = None
    """A sweep whose words take the place of what was typed."""
    only: tuple[str, ...] = ()
    """What jobs of a sweep must have: a key and values each."""


def read_flags(words: Sequence[str]) -> Flags:
    """Take *words* apart. Raises ConfigError when a flag is unknown or lacks its value."""
    parser = Parser(prog="vertumnus", add_help=False)
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("-m", "--multirun", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--cfg", choices=["job"])
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("--jobs", type=positive, metavar="N")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--resume", metavar="SWEEP")
    parser.add_argument("--only", action="append", default=[], type=only_word, metavar="KEY=VALUE,...")
    read = parser.parse_intermixed_args(list(words))
    is_sweep = read.multirun or read.resume is not None
    for flag, given in (
        ("--jobs", read.jobs is not None),
        ("--again", read.again),
        ("--only", bool(read.only)),
    ):
        if given and not is_sweep:
            parser.error(f"{flag}: has no effect without -m")
    if read.resolve and not read.cfg:
        parser.error("--resolve: has no effect without --cfg job")
    return Flags(
        overrides=tuple(read.overrides),
        multirun=is_sweep,
        dry_run=read.dry_run,
        show_config=read.cfg is not None,
        resolve=read.resolve,
        jobs=read.jobs,
        again=read.again,
        resume=read.resume,
        only=tuple(read.only),
    )


def only_word(word: str) -> str:
    """Return *word* as what jobs of a sweep must have, for argparse: a key and values."""
    key, _, values = word.partition("=")
    if not (key and values):
        raise argparse.ArgumentTypeError(f"found {word}, must be KEY=VALUE or KEY=VALUE,VALUE")
    return word
