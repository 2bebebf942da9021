"""A run in a process of its own, started as a user would, that consoles can attach to."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vertumnus.records.run_dir import RunDir, list_runs

PATIENCE_S = 300.0
"""With a run that does not end [s]."""


class Attachable:
    """The run while it goes."""

    def __init__(self, runs_dir: Path, *words: str) -> None:
        """Start ``vertumnus`` with the overrides *words* and wait until its action socket is there."""
        self._child = subprocess.Popen(
            [sys.executable, "-m", "vertumnus", *words, f"runs_dir={runs_dir}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._child.stderr is not None
        said = []
        for line in self._child.stderr:
            said.append(line)
            if "to watch and act" in line:
                break
        else:
            raise AssertionError("".join(said))
        self.run: RunDir = list_runs(runs_dir)[-1].run

    @property
    def pid(self) -> int:
        """Of the coordinator."""
        return self._child.pid

    def interrupt(self) -> int:
        """End it as Ctrl-C does and return its exit code."""
        self._child.send_signal(signal.SIGINT)
        self._child.communicate(timeout=PATIENCE_S)
        return self._child.returncode

    def kill(self) -> None:
        """End it without a chance to say anything."""
        self._child.kill()
        self._child.communicate(timeout=PATIENCE_S)


@contextmanager
def attachable(runs_dir: Path, *words: str) -> Iterator[Attachable]:
    """Yield a run that is ended afterwards, whatever happened."""
    going = Attachable(runs_dir, *words)
    try:
        yield going
    finally:
        if going._child.poll() is None:
            going.interrupt()
