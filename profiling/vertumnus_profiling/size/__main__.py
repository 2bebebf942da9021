"""``python -m vertumnus_profiling.size``, which ``vertumnus size`` becomes."""

import sys
from collections.abc import Sequence

import msgspec
from rich.console import Console

from vertumnus.commandline.exit_codes import OK, exit_code_of
from vertumnus.run.interrupts import one_interrupt
from vertumnus_profiling.size.options import read_options
from vertumnus_profiling.size.program import answer
from vertumnus_profiling.size.show import document_of, text_of


def main(argv: Sequence[str] | None = None) -> int:
    """Answer what *argv* (sys.argv without the program) asks and return the exit code."""
    return exit_code_of(_size, argv, "interrupted; an answer takes all of it, nothing is kept")


@one_interrupt()
def _size(words: Sequence[str]) -> int:
    options = read_options(words)
    found = answer(options, Console(stderr=True))
    if options.as_json:
        print(msgspec.json.format(msgspec.json.encode(document_of(found, options))).decode())
    else:
        print(text_of(found, options))
    return OK


if __name__ == "__main__":
    sys.exit(main())
