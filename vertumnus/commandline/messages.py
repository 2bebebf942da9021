"""What the user reads when something is wrong: the message, not the traceback."""

import os
import sys
import traceback
from collections.abc import Sequence

from vertumnus.domain.wording import counted


def tell(line: str) -> None:
    """Print a *line* of narration."""
    print(line, file=sys.stderr, flush=True)


def report_problems(problems: Sequence[str]) -> None:
    """Print *problems* on stderr, one line each; under VERTUMNUS_DEBUG=1 the traceback too."""
    if os.environ.get("VERTUMNUS_DEBUG") == "1" and sys.exc_info()[0] is not None:
        traceback.print_exc()
    if len(problems) == 1:
        print(f"error: {problems[0]}", file=sys.stderr)
    else:
        print(f"error: {counted(len(problems), 'problem')}", file=sys.stderr)
        for problem in problems:
            print(f"  - {problem}", file=sys.stderr)
