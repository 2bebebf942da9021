"""Ranks as operating-system processes: start, watch, explain, kill; nothing outlives the coordinator.

Each rank runs in a session of its own, so that a Ctrl-C in the terminal reaches the coordinator alone.
What ranks print goes to files without a name: the kernel frees them with their last holder, however
that ended.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from vertumnus.domain.errors import VertumnusError
from vertumnus.live.messages import Peer

RUN_VARIABLE = "VERTUMNUS_RUN"
"""Environment variable that hands the run's secret to a rank, out of sight of other users' ``ps``."""

BAD_INPUT = 2
"""Exit status of a rank that found the user's input wrong and printed only that."""

_NCCL = {
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "2",  # by default a lost peer takes the ranks beside it down
    "TORCH_NCCL_BLOCKING_WAIT": "0",  # one look at the end of a step, no pause in each of its waits
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",  # others' traces are not waited for
}
"""A group that broke is given up, its ranks regroup under the next generation."""

_TAIL_BYTES = 64 << 10
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class StartError(VertumnusError):
    """The ranks did not all come up."""


class RankProcess:
    """One rank's process and what it printed."""

    def __init__(self, peer: Peer, incarnation: int, endpoint: str, run: str, fds: Sequence[int]) -> None:
        """Start the process; *fds* are the KV files that it may map."""
        self.peer = peer
        self.incarnation = incarnation
        self._printed: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
        self._process = subprocess.Popen(
            _command(peer, incarnation, endpoint),
            stdin=subprocess.DEVNULL,
            stdout=self._printed,
            stderr=subprocess.STDOUT,
            env=_environment(run),
            pass_fds=tuple(fds),
            start_new_session=True,
        )
        self.death_fd = _pidfd(self._process.pid)
        """Readable once the process has ended; None where the system has no such thing."""

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def has_ended(self) -> bool:
        """Return whether the process is gone, for whatever reason."""
        return self._process.poll() is not None

    @property
    def exit_status(self) -> int:
        """Exit status of the ended process; negative for the signal that killed it."""
        return self._process.wait()

    def how_it_ended(self) -> str:
        """Say how the process ended, with the last line that it printed."""
        code = self._process.poll()
        if code is None:
            return "still running"
        cause = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        last = self.tail(1).strip()
        return f"{cause}: {last}" if last and code > 0 else cause

    def tail(self, lines: int) -> str:
        """Return the last *lines* that the process printed."""
        fd = self._printed.fileno()
        # pread: the file's offset is the one that the child writes at
        text = os.pread(fd, _TAIL_BYTES, max(0, os.fstat(fd).st_size - _TAIL_BYTES))
        return "\n".join(text.decode(errors="replace").splitlines()[-lines:])

    def wait(self, seconds: float) -> bool:
        """Return whether the process ended within *seconds*."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End the process and whatever it started, frozen or not; safe to call twice."""
        if not self.has_ended():
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def close(self) -> None:
        """Kill the process and release what the coordinator held for it; safe to call twice."""
        self.kill()
        self._printed.close()
        if self.death_fd is not None:
            os.close(self.death_fd)
            self.death_fd = None


def bind_to_parent(parent_pid: int) -> None:
    """Have this process killed when its parent ends. Call it first thing in a rank.

    On Linux the kernel does that, at any moment; elsewhere the rank's own check between two pieces of
    work has to (`is_orphan`). Ctrl-C is the coordinator's to handle.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if is_orphan(parent_pid):  # it ended before we asked
        sys.exit(1)


def is_orphan(parent_pid: int) -> bool:
    """Return whether the process that started this one is gone."""
    return os.getppid() != parent_pid


def _command(peer: Peer, incarnation: int, endpoint: str) -> list[str]:
    # -P: a file named like one of our imports in the user's folder must not be found
    return [
        sys.executable,
        "-P",
        "-m",
        "vertumnus.live.rank",
        *("--pool", peer.pool),
        *("--rank", str(peer.rank)),
        *("--incarnation", str(incarnation)),
        *("--endpoint", endpoint),
        *("--parent", str(os.getpid())),
    ]


def _environment(run: str) -> dict[str, str]:
    """Return the ranks' environment: one compute thread each, and the run's secret."""
    return {**os.environ, RUN_VARIABLE: run, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", **_NCCL}


def _pidfd(pid: int) -> int | None:
    if sys.platform == "linux":
        with suppress(OSError):  # some containers forbid it
            return os.pidfd_open(pid)
    return None
