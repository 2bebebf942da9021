"""The verb ``console``: starts the operator's console, an application of its own."""

import subprocess
import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence
from importlib.util import find_spec
from math import isfinite

from vertumnus.actions.protocol import LONGEST_NAME
from vertumnus.commandline.flags import Parser, run_parser
from vertumnus.domain.errors import ConfigError


def console(words: Sequence[str]) -> int:
    """``console [RUN]``: watch a live run, or replay one that has ended."""
    console_parser().parse_args(list(words))  # help and mistakes are answered here
    if find_spec("textual") is None:
        raise ConfigError("console: Textual is not installed; pip install 'vertumnus[console]' brings it")
    if not sys.stdout.isatty():
        raise ConfigError("console: stdout is not a terminal; vertumnus report prints results as text")
    return subprocess.call([sys.executable, "-m", "vertumnus_console", *words])


def console_parser() -> Parser:
    """Return the parser of the verb's words, which the application reads again."""
    parser = run_parser("console", "Watch and operate a live run, or replay one that has ended.")
    parser.add_argument(
        "run", nargs="?", default="latest", help="a run id, its first or last letters; default the newest run"
    )
    parser.add_argument(
        "--speed", type=_speed, default=1.0, metavar="N", help="play N seconds of the run a second; default 1"
    )
    parser.add_argument("--read-only", action="store_true", help="show everything, change nothing")
    parser.add_argument(
        "--as",
        dest="who",
        type=_name,
        metavar="NAME",
        help="who acts, in the run's log; default user@terminal",
    )
    return parser


def _name(word: str) -> str:
    if not (word.isprintable() and word.strip() and len(word) <= LONGEST_NAME):
        raise ArgumentTypeError(f"found {word!r}, must be 1 to {LONGEST_NAME} printable characters")
    return word


def _speed(word: str) -> float:
    try:
        speed = float(word)
    except ValueError:
        speed = 0.0
    if not (isfinite(speed) and speed > 0.0):
        raise ArgumentTypeError(f"found {word}, must be a number above 0")
    return speed
