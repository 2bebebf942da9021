"""The process of one job: ``python -m vertumnus.sweep.child`` reads what to run and runs it.

stdout carries messages to the sweep. The end of stdin, which is also the sweep's death, interrupts
the run; what was recorded until then is kept.
"""

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress

from vertumnus.config import to_run_config
from vertumnus.domain.errors import ConfigError, VertumnusError
from vertumnus.live.config import LiveConfig
from vertumnus.records.provenance import code_hash
from vertumnus.report.drawing import console_for
from vertumnus.run.asked import Asked
from vertumnus.run.execute import serve
from vertumnus.run.interrupts import one_interrupt
from vertumnus.sweep.job import Ending
from vertumnus.sweep.messages import (
    Assignment,
    Ended,
    Message,
    Progressed,
    Said,
    read_assignment,
    to_line,
)

CHANGED = "the code has changed since the sweep began, and one sweep is of one code; start it again"

Send = Callable[[Message], None]


class SaidLines(io.StringIO):
    """A text file whose lines are sent as messages."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send
        self._rest = ""

    def write(self, text: str, /) -> int:
        """Send the lines that *text* completes."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._send(Said(line))
        return len(text)


def main() -> None:
    """Run the one job that stdin tells."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # but while the run goes
    send = _taking_stdout()
    try:
        with one_interrupt():
            assignment = read_assignment(sys.stdin.buffer.readline())
            threading.Thread(target=_interrupt_at_the_end_of_stdin, daemon=True).start()
            ending = run_assigned(assignment, send)
    except KeyboardInterrupt:
        ending = Ending("interrupted")
    send(Ended(ending))


def run_assigned(assignment: Assignment, send: Send) -> Ending:
    """Run what *assignment* says and return how that ended, whatever happens."""

    def tell(done: int, planned: int) -> None:
        send(Progressed(done, planned))

    asked = Asked(assignment.words, assignment.sweep, tell=tell)
    try:
        config = to_run_config({**assignment.config, "runs_dir": assignment.runs_dir})
        is_live = isinstance(config.backend, LiveConfig)
        if code_hash(is_live) != assignment.code_hash:
            return Ending("bad input", problems=(CHANGED,))
        # a simulated run has nothing to say that the others of its sweep do not
        said = SaidLines(send) if is_live else io.StringIO()
        recorded = serve(config, asked, console_for(said))
    except ConfigError as error:
        return Ending("bad input", problems=tuple(error.problems))
    except VertumnusError as error:  # its ranks did not come up, or were lost before it began
        return Ending("failed", problems=tuple(str(error).splitlines()))
    except Exception:
        return Ending("failed", problems=tuple(traceback.format_exc().splitlines()))
    failure = recorded.failure
    told = () if failure is None else tuple("".join(traceback.format_exception(failure)).splitlines())
    problems = told if recorded.end.status == "failed" else ()
    return Ending(recorded.end.status, recorded.run.run_id, recorded.end.verdict, problems)


def _taking_stdout() -> Send:
    """Return the sender on what was stdout; whatever else is printed goes to stderr from here on."""
    messages = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    # two threads of a live run may speak at once
    speaking = threading.Lock()

    def send(message: Message) -> None:
        with speaking, suppress(BrokenPipeError):  # nobody listens: stdin ends too, and that ends the run
            messages.write(to_line(message))

    return send


def _interrupt_at_the_end_of_stdin() -> None:
    while os.read(0, 1):  # unbuffered: a lock on sys.stdin would be held when the interpreter ends
        pass
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


if __name__ == "__main__":
    main()
