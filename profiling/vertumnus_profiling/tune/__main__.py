"""``python -m vertumnus_profiling.tune``, which ``vertumnus tune`` becomes."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from vertumnus.commandline.exit_codes import OK, exit_code_of
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.extras import installing
from vertumnus.report.drawing import console_for
from vertumnus.run.interrupts import one_interrupt
from vertumnus_profiling.tune.options import read_options


def main(argv: Sequence[str] | None = None) -> int:
    """Tune what *argv* (sys.argv without the program) asks for and return the exit code."""
    return exit_code_of(_tune, argv, "interrupted; what was tried is kept, start again to continue")


@one_interrupt()
def _tune(words: Sequence[str]) -> int:
    options = read_options(words)
    if find_spec("scipy") is None:
        raise ConfigError(f"scipy: not installed, the search needs it; {installing('live')}")
    from vertumnus_profiling.tune.program import tune  # imports scipy

    tune(options, console_for(sys.stderr))
    return OK


if __name__ == "__main__":
    sys.exit(main())
