"""A Unix socket by its path, however long the path is."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def address(path: Path) -> Iterator[str]:
    """Yield an address of the socket at *path* to bind or connect to meanwhile.

    The system takes 107 bytes; the folder's descriptor stands for the part before the name.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listener(path: Path, backlog: int) -> socket.socket:
    """Return a socket that listens at *path*, for the owner alone; raises OSError.

    What lies there already is replaced: a run has its folder for itself.
    """
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with address(path) as name:
            made.bind(name)
        os.chmod(path, 0o600)  # before `listen`: nobody connects to what does not listen
        made.listen(backlog)
    except BaseException:
        made.close()
        raise
    return made
