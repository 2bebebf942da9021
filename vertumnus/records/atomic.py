"""Files that appear whole or not at all."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What a write ends in, without the name of its file, when there is no room or no disk."""


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let *write* fill a hidden file beside *path*, bring it to the disk and give it its name.

    Readers see the old content or the new, never a part. When *write* fails nothing is left. Raises OSError,
    which names *path* where the hidden file is what could not be made or written.
    """
    hidden = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with hidden.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden, path)
    except BaseException as error:
        hidden.unlink(missing_ok=True)
        if isinstance(error, OSError) and _is_of(error, hidden):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    sync_folder(path.parent)


def _is_of(error: OSError, file: Path) -> bool:
    nameless = error.filename is None and error.errno in _OF_THE_DISK
    return nameless or error.filename == str(file)


def sync_folder(folder: Path) -> None:
    """Bring the names in *folder* to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
