"""``python -m vertumnus_profiling.bench``: run benchmarks, show them, keep them as JSON."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from vertumnus.commandline.exit_codes import OK, exit_code_of
from vertumnus.domain.errors import ConfigError
from vertumnus.records.atomic import write_whole
from vertumnus_profiling.bench.catalogue import BENCHMARKS, run, select
from vertumnus_profiling.bench.machine import LoadWatch, Machine, load_warning, look_at_machine
from vertumnus_profiling.bench.measure import Result, Settings, Skipped
from vertumnus_profiling.bench.show import Table, heading

WATCH_S = 0.5
"""The machine's load is watched this long before the first benchmark [s]."""
FULL_REPEATS, QUICK_REPEATS = 7, 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run what *argv* (sys.argv without the program) asks for and return the exit code."""
    return exit_code_of(_bench, argv)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m vertumnus_profiling.bench",
        description="Measure the hot paths.",
        epilog="benchmarks:\n" + "\n".join(f"  {name:<12} {_purpose(name)}" for name in BENCHMARKS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; none: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE, too")
    parser.add_argument(
        "--repeats", type=int, metavar="N", help=f"default {FULL_REPEATS}, with --quick {QUICK_REPEATS}"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: see that everything works")
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="Mooncake trace for match; default: generated tool-agent"
    )
    return parser


def _purpose(name: str) -> str:
    return (BENCHMARKS[name].__doc__ or "").splitlines()[0]


def _bench(words: Sequence[str]) -> int:
    options = _parser().parse_args(list(words))
    names = select(options.names)
    _check_files(options, names)
    machine = look_at_machine(WATCH_S)
    print(heading(machine), flush=True)
    _warn(machine.others_at_start, machine.cores)
    outcomes: list[Result | Skipped] = []
    table, watch = Table(sys.stdout), LoadWatch()
    with tempfile.TemporaryDirectory(prefix="vertumnus-bench-") as scratch:
        for outcome in run(names, _settings(options, Path(scratch))):
            table.show(outcome)
            outcomes.append(outcome)
    others = watch.others()
    _warn(others, machine.cores)
    if options.json:
        write_whole(options.json, lambda file: file.write(to_json(machine, others, outcomes)))
    return OK


def _warn(others: float | None, cores: int) -> None:
    warning = load_warning(others, cores)
    if warning:
        print(f"warning: {warning}", file=sys.stderr)


def _settings(options: argparse.Namespace, scratch: Path) -> Settings:
    default = QUICK_REPEATS if options.quick else FULL_REPEATS
    repeats = default if options.repeats is None else options.repeats
    return Settings(scratch=scratch, repeats=repeats, quick=options.quick, trace=options.trace)


def _check_files(options: argparse.Namespace, names: Sequence[str]) -> None:
    problems = []
    if options.repeats is not None and options.repeats < 1:
        problems.append(f"--repeats: found {options.repeats}, must be at least 1")
    if options.json and not options.json.parent.is_dir():
        problems.append(f"--json: there is no folder {options.json.parent}")
    if options.trace and not options.trace.is_file():
        problems.append(f"--trace: there is no file {options.trace}")
    if options.trace and "match" not in names:
        problems.append("--trace: has no effect without the benchmark match")
    if problems:
        raise ConfigError(*problems)


def to_json(machine: Machine, others: float | None, outcomes: Sequence[Result | Skipped]) -> bytes:
    """Return machine, load of *others* while measuring, results and what was skipped as indented JSON."""
    document = {
        "machine": machine,
        "others_while_measuring": others,
        "results": [outcome for outcome in outcomes if isinstance(outcome, Result)],
        "skipped": [outcome for outcome in outcomes if isinstance(outcome, Skipped)],
    }
    return msgspec.json.format(msgspec.json.encode(document)) + b"\n"


if __name__ == "__main__":
    sys.exit(main())
