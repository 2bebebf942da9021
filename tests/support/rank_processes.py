"""Finds the processes of live ranks, freezes and weighs them, and waits for their end without polling."""

import os
import select
import signal
from pathlib import Path

END_S = 300.0


def ranks_started_by(parent_pid: int) -> list[int]:
    """Return the ids of ranks that process *parent_pid* started and that have not ended."""
    wanted = ["vertumnus.live.rank", "--parent", str(parent_pid)]
    return [pid for pid in _processes() if all(word in _command_line(pid) for word in wanted)]


def freeze(pid: int) -> None:
    """Stop a child process and return once it has stopped: a busy machine may take its time."""
    os.kill(pid, signal.SIGSTOP)
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), f"process {pid} ended instead"


def wait_for_end(pid: int) -> None:
    """Wait until a process that need not be our child has ended; fail after `END_S`."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], END_S)[0], f"process {pid} is still there"
    finally:
        os.close(fd)


def resident_bytes(pid: int) -> int:
    """Return the memory of a process that is in use and its own: shared maps are not counted."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def threads_of(pid: int) -> int:
    """Return the number of threads of a process."""
    return len(os.listdir(f"/proc/{pid}/task"))


def _processes() -> list[int]:
    return sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _command_line(pid: int) -> list[str]:
    """Return the arguments of a process; none for one that has ended, a zombie included."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []
