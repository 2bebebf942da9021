"""A job's process as the sweep sees it: started, heard, asked to end."""

import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import NamedTuple

from vertumnus.sweep.memory import peak_bytes
from vertumnus.sweep.messages import Assignment, Message, read_message, to_line

LAST_WORDS = 12
"""Lines of a failed process that are shown."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""For simulated jobs, of which there is one on each core."""


class Heard(NamedTuple):
    """A message of a job's process; None when the process has closed its side."""

    number: int
    message: Message | None


class JobProcess:
    """The process that runs job *number*; what it says goes to *heard*."""

    def __init__(
        self, number: int, assignment: Assignment, heard: "SimpleQueue[Heard]", *, one_thread: bool
    ) -> None:
        """Start it, in a session of its own: the terminal's Ctrl-C reaches the sweep, which tells it."""
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the last words)
        # -P: what lies in the current folder must not pass for a module
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "vertumnus.sweep.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, **(ONE_THREAD if one_thread else {})},
            start_new_session=True,
        )
        self._number = number
        self._heard = heard
        self._assign(assignment)
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def peak_bytes(self) -> int:
        """Its largest resident size so far."""
        return peak_bytes(self._process.pid)

    def ask_to_end(self) -> None:
        """Interrupt its run, which it closes before it ends."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # what it was to read before it died
            self._process.stdin.close()

    def last_words(self) -> tuple[str, ...]:
        """Wait for its end and return the last lines that it wrote outside its messages."""
        self.ask_to_end()  # it has gone; its stdin is still to be closed
        self._process.wait()
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").splitlines()[-LAST_WORDS:]
        self._stderr.close()
        code = self._process.returncode
        return (*lines, *([f"the job's process ended with status {code}"] if code else []))

    def _assign(self, assignment: Assignment) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died at once; its end is heard like any other
            self._process.stdin.write(to_line(assignment))
            self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                message = read_message(line)
                if message is not None:
                    self._heard.put(Heard(self._number, message))
        self._heard.put(Heard(self._number, None))
