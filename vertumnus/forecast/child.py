"""``python -m vertumnus.forecast.child``: answers questions from stdin on stdout until stdin ends."""

import os
import sys

from vertumnus.forecast.child_process import receive, send
from vertumnus.forecast.trial import answer

NICENESS = 10
"""The ranks go first: a forecast may be late, a prefill should not."""


def main() -> None:
    """Answer one question after the other."""
    os.nice(NICENESS)
    asks, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing that somebody prints gets between the answers
    while True:
        try:
            question = receive(asks)
        except EOFError:
            return
        try:
            answered: object = answer(question)
        except Exception as error:
            answered = f"{type(error).__name__}: {error}"
        send(answers, answered)


if __name__ == "__main__":
    main()
