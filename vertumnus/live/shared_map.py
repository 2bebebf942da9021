"""KV maps of one host in files without a name.

The coordinator opens a file for each prefill rank and hands it down; the rank maps it to write, decode
ranks to read. The kernel frees it with its last holder, so not even a SIGKILL of everything leaves one.
"""

import mmap
import os
import tempfile
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import torch

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.wording import counted
from vertumnus.live.kv_store import KvLayout, KvStore, free_disk_bytes


def nameless_file(directory: Path, size_bytes: int) -> IO[bytes]:
    """Return an open file of *size_bytes* in *directory* that has no name there, its room reserved.

    Raises ConfigError when the directory cannot hold it.
    """
    try:
        file: IO[bytes] = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 (the caller's)
    except OSError as error:
        raise ConfigError(f"backend.shared_dir: cannot write in {directory}: {error.strerror}") from error
    try:
        _reserve(file.fileno(), directory, size_bytes)
    except BaseException:
        file.close()
        raise
    return file


def nameless_files(count: int, directory: Path, size_bytes: int) -> list[IO[bytes]]:
    """Return *count* of them, or none. Raises ConfigError when the directory cannot hold all."""
    with ExitStack() as undo:
        files = [undo.enter_context(nameless_file(directory, size_bytes)) for _ in range(count)]
        undo.pop_all()
    return files


def map_store(fd: int, layout: KvLayout, slots: int, block_tokens: int, *, writable: bool) -> KvStore:
    """Return the store in the inherited file *fd*; writing to one that is not *writable* crashes."""
    size_bytes = slots * layout.bytes_per_block(block_tokens)
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    pages = mmap.mmap(fd, size_bytes, access=access)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch warns that a reader's map is read-only: it is
        storage = torch.frombuffer(pages, dtype=layout.dtype)
    return KvStore(layout, slots, block_tokens, storage)


def _reserve(fd: int, directory: Path, size_bytes: int) -> None:
    """Take the file's room now: a full disk would be a bus error in the middle of a step."""
    available = free_disk_bytes(directory)
    no_room = (
        f"backend.shared_dir: {directory} has no room for a KV map of {counted(size_bytes, 'byte')}, "
        f"{available:,} are free; fewer cluster.blocks_per_rank or another directory"
    )
    if size_bytes > available:
        raise ConfigError(no_room)
    try:
        os.posix_fallocate(fd, 0, size_bytes)
    except OSError as error:  # taken by another process meanwhile, or by a quota
        raise ConfigError(f"{no_room} ({error.strerror})") from error
