"""The verb ``console``: starts the operator's console, an application of its own."""

import subprocess
import sys
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from importlib.util import find_spec
from math import isfinite

from vertumnus.actions.protocol import LONGEST_NAME
from vertumnus.commandline.parser import RUN, Parser, folder, run_parser
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.extras import installing
from vertumnus.domain.wording import counted

WIDEST, HIGHEST = 500, 200
"""Columns and lines of a picture at most."""


def console(words: Sequence[str]) -> int:
    """``console [RUN [RUN]]``: watch a live run, or replay one that has ended; two side by side."""
    read = console_parser().parse_args(list(words))  # help and mistakes are answered here
    if find_spec("textual") is None:
        raise ConfigError(f"console: Textual is not installed; {installing('console')} brings it")
    if read.pictures is None and not sys.stdout.isatty():
        raise ConfigError("console: stdout is not a terminal; vertumnus report prints results as text")
    return subprocess.call([sys.executable, "-P", "-m", "vertumnus_console", *words])


def console_parser() -> Parser:
    """Return the parser of the verb's words, which the application reads again."""
    parser = run_parser("console", "Watch and operate a live run, or replay one that has ended.")
    parser.add_argument(
        "runs",
        nargs="*",
        action=_AtMostTwo,
        metavar="RUN",
        help=f"{RUN}; default the newest that is going, else the newest; two stand side by side",
    )
    parser.add_argument(
        "--speed", type=_speed, default=1.0, metavar="N", help="play N seconds of the run a second; default 1"
    )
    parser.add_argument(
        "--at", type=_instant, metavar="SECONDS", help="begin at this instant of the run, paused"
    )
    parser.add_argument("--read-only", action="store_true", help="show everything, change nothing")
    parser.add_argument("--light", action="store_true", help="begin in the light theme (D changes it)")
    parser.add_argument(
        "--as",
        dest="who",
        type=_name,
        metavar="NAME",
        help="who acts, in the run's log; default user@terminal",
    )
    parser.add_argument(
        "--pictures",
        type=folder,
        metavar="FOLDER",
        help="write every screen to FOLDER as SVG and end; needs no terminal",
    )
    parser.add_argument("--force", action="store_true", help="replace pictures that are in FOLDER already")
    parser.add_argument(
        "--size",
        type=_size,
        default=(100, 30),
        metavar="COLUMNSxLINES",
        help="of the pictures, at least 80x24; default 100x30",
    )
    return parser


class _AtMostTwo(Action):
    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: object, flag: str | None = None
    ) -> None:
        assert isinstance(values, list)
        if len(values) > 2:
            parser.error(
                f"RUN: found {counted(len(values), 'run')} ({', '.join(values)}), at most 2 stand side by "
                f"side"
            )
        namespace.runs = values


def _name(word: str) -> str:
    if not (word.isprintable() and word.strip() and len(word) <= LONGEST_NAME):
        raise ArgumentTypeError(f"found {word!r}, must be 1 to {LONGEST_NAME} printable characters")
    return word


def _speed(word: str) -> float:
    speed = _number(word)
    if not speed or speed < 0.0:
        raise ArgumentTypeError(f"found {word}, must be a number above 0")
    return speed


def _instant(word: str) -> float:
    instant = _number(word)
    if instant is None or instant < 0.0:
        raise ArgumentTypeError(f"found {word}, must be seconds from the run's start, at least 0")
    return instant


def _number(word: str) -> float | None:
    """Return the finite number that *word* is; None when it is none."""
    try:
        number = float(word)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _size(word: str) -> tuple[int, int]:
    columns, _, lines = word.partition("x")
    if not (columns.isdecimal() and lines.isdecimal() and _fits(int(columns), int(lines))):
        raise ArgumentTypeError(f"found {word}, must be from 80x24 to {WIDEST}x{HIGHEST}, as 160x48")
    return int(columns), int(lines)


def _fits(columns: int, lines: int) -> bool:
    return 80 <= columns <= WIDEST and 24 <= lines <= HIGHEST
