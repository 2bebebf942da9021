"""``python -m vertumnus.forecast.child``: answers questions from stdin on stdout until stdin ends."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from vertumnus.forecast.child_process import READY, receive, send
from vertumnus.forecast.trial import answer

NICENESS = 10
"""The ranks go first: a forecast may be late, a prefill should not."""


_AUTOGROUP = Path("/proc/self/autogroup")


def main() -> None:
    """Answer one question after the other."""
    asks, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that somebody prints, a library in C included, gets between the answers
    step_back()
    send(answers, READY)
    while True:
        try:
            question = receive(asks)
        except EOFError:
            return
        try:
            answered: object = answer(question)
        except Exception as error:
            answered = f"{type(error).__name__}: {error}"
        try:
            send(answers, answered)
        except (
            BrokenPipeError
        ):  # the run that asked is gone, killed it may be, and has no ear for a traceback
            return


def step_back() -> None:
    """Take NICENESS; where Linux shares out the cores by sessions first, this session takes it too."""
    os.nice(NICENESS)
    with suppress(OSError):  # another system, or a container that may not: the process's own niceness stays
        _AUTOGROUP.write_text(str(NICENESS))


if __name__ == "__main__":
    main()
