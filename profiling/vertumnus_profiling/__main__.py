"""``python -m vertumnus_profiling``, which ``vertumnus profile`` becomes."""

import sys
from collections.abc import Sequence

from vertumnus.commandline.exit_codes import OK, exit_code_of
from vertumnus.live.plan import require_packages
from vertumnus.report.drawing import console_for
from vertumnus.run.interrupts import one_interrupt
from vertumnus_profiling.options import read_options


def main(argv: Sequence[str] | None = None) -> int:
    """Make the profile that *argv* (sys.argv without the program) asks for and return the exit code."""
    return exit_code_of(_profile, argv, "interrupted; what was measured is kept, start again to continue")


@one_interrupt()
def _profile(words: Sequence[str]) -> int:
    options = read_options(words)
    require_packages()
    from vertumnus_profiling.program import make_profile  # imports torch and scipy

    make_profile(options, console_for(sys.stderr))
    return OK


if __name__ == "__main__":
    sys.exit(main())
