"""The parser of every verb: its errors are ours, with flag, what was found and what is allowed."""

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from vertumnus.domain.errors import ConfigError

RUN = "a run id, its first or last letters, or latest"
"""What names a stored run, for help texts."""

_FORMS = {
    "json": "as JSON, on stdout",
    "csv": "as CSV, on stdout",
    "parquet": "as a Parquet file, on stdout: > FILE.parquet",
    "markdown": "as a Markdown page, on stdout; of --schema",
}


class Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of leaving the program; a flag is spelled in full."""

    def __init__(self, **options: Any) -> None:
        """Make one with the *options* of argparse."""
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError with what argparse, or a verb, found wrong."""
        raise ConfigError(*_in_our_words(message, self._option_string_actions, f"see {self.prog} --help"))


def run_parser(verb: str, says: str, runs_dir: Callable[[str], Path] | None = None) -> Parser:
    """Return the parser of a verb over stored runs; *runs_dir* checks their folder, which is to be there."""
    parser = Parser(prog=f"vertumnus {verb}", description=says)
    parser.add_argument(
        "--runs-dir",
        type=runs_dir or existing_folder,
        default=Path("runs"),
        metavar="FOLDER",
        help="where the runs lie; default runs",
    )
    return parser


def add_forms(parser: Parser, forms: Sequence[str]) -> None:
    """Let *parser* take one of *forms* for the output, as ``form``; "text" when none is named."""
    group = parser.add_mutually_exclusive_group()
    for form in forms:
        group.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, default="text", help=_FORMS[form]
        )


def existing_folder(word: str) -> Path:
    """Return the folder that *word* names, for argparse; it must be there."""
    if not word or not Path(word).is_dir():
        raise argparse.ArgumentTypeError(f"found {word}, which is no folder")
    return Path(word)


def folder(word: str) -> Path:
    """Return the folder that *word* names, for argparse; it need not be there, but then no file may be."""
    path = Path(word)
    files = [str(part) for part in (path, *path.parents) if part.exists() and not part.is_dir()]
    if not word:
        raise argparse.ArgumentTypeError(f"found {word}, must name a folder")
    if files:
        what = "which" if files[0] == str(path) else f"but {files[0]}"
        raise argparse.ArgumentTypeError(f"found {word}, {what} is a file; must be a folder")
    return path


def positive(word: str) -> int:
    """Return *word* as a whole number of at least 1, for argparse."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"found {word}, must be a whole number of at least 1")
    return int(word)


# ---- what argparse says -----------------------------------------------------------------------------

_KINDS = {"int": "a whole number", "float": "a number"}


def _in_our_words(message: str, flags: Iterable[str], hint: str) -> Iterator[str]:
    """Yield each problem that *message* of argparse holds, in the form of all our messages."""
    if found := re.fullmatch(r"unrecognized arguments: (.*)", message):
        for word in found[1].split(" "):
            yield f"{word or repr(word)}: {_unknown(word, flags, hint)}"
    elif found := re.fullmatch(r"the following arguments are required: (.*)", message):
        yield f"{found[1]}: required, but not given; {hint}"
    elif found := re.fullmatch(r"argument ([^:]+): (.*)", message, re.DOTALL):
        yield f"{found[1]}: {_of_one(found[2], hint)}"
    else:
        yield f"{message}; {hint}"


def _unknown(word: str, flags: Iterable[str], hint: str) -> str:
    if not word.startswith("-"):
        return f"one word too many; {hint}"
    return "no such flag" + (_meant(word.partition("=")[0], flags) or f"; {hint}")


def _of_one(said: str, hint: str) -> str:
    """Return what is wrong with the value of one flag or word, of which argparse *said* so."""
    if found := re.fullmatch(r"invalid choice: (.*) \(choose from (.*)\)", said, re.DOTALL):
        options = [option.strip("' ") for option in found[2].split(",")]
        meant = _meant(found[1].strip("'"), options)
        return f"found {_plain(found[1])}, must be one of {', '.join(options)}{meant}"
    if found := re.fullmatch(r"invalid (\w+) value: (.*)", said, re.DOTALL):
        return f"found {_plain(found[2])}, must be {_KINDS.get(found[1], found[1])}"
    if found := re.fullmatch(r"not allowed with argument (.*)", said):
        return f"cannot stand beside {found[1]}; leave one out"
    if found := re.fullmatch(r"ignored explicit argument (.*)", said):
        return f"found {_plain(found[1])}, takes no value"
    if said.startswith("expected "):
        return f"found no value, needs one; {hint}"
    return re.sub("^found ,", "found '',", said)  # of a verb's own check, to which it was nothing


def _meant(word: str, known: Iterable[str]) -> str:
    from vertumnus.config import nearest  # here: only a mistake waits for its imports

    near = nearest(word, known)
    return f"; did you mean {near}?" if near else ""


def _plain(quoted: str) -> str:
    """Return a word without the quotes that argparse gives it, unless nothing would be left."""
    return quoted.strip("'") or quoted
