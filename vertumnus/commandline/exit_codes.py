"""What the exit codes of every program here mean, and how a program's end becomes one."""

import os
import sys
from collections.abc import Callable, Collection, Sequence

from vertumnus.commandline.messages import report_problems
from vertumnus.domain.errors import ConfigError, VertumnusError

OK = 0
FAILED = 1
"""A run started and failed."""
BAD_INPUT = 2
"""Nothing was started: a key, value, flag or file is the user's to mend."""
INVALID = 3
"""The run finished, but its verdict says that its numbers do not count."""
_MISTAKEN = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
"""What is wrong with a path that was named; the other errors are of the disk."""
INTERRUPTED = 130
"""Ctrl-C; what was recorded until then is kept."""


def exit_code_of(
    program: Callable[[Sequence[str]], int], argv: Sequence[str] | None, interrupted: str = "interrupted"
) -> int:
    """Return what *program* makes of *argv* (None: the command line), or what its error or Ctrl-C means.

    Errors of ours are messages on stderr, and so are *interrupted* and a file that the system refuses;
    whatever else is raised goes through.
    """
    try:
        return program(sys.argv[1:] if argv is None else argv)
    except ConfigError as error:
        report_problems(error.problems)
        return BAD_INPUT
    except VertumnusError as error:  # it could not begin, or was lost: ranks that did not come up, say
        report_problems([str(error)])
        return FAILED
    except KeyboardInterrupt:
        print(interrupted, file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe had enough: vertumnus ls | head -1
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:
        if error.filename is None:
            raise
        report_problems([f"{error.filename}: {error.strerror}"])
        return BAD_INPUT if isinstance(error, _MISTAKEN) else FAILED


def worst(codes: Collection[int]) -> int:
    """Return the code that tells most of several; OK of none."""
    return next((code for code in (INTERRUPTED, BAD_INPUT, FAILED, INVALID) if code in codes), OK)
