"""The newest state that a console has of a run, in a file of the user's own: the next one begins there.

A state is a pickle, which runs code when it is read, so that only what this very code wrote for this user is:
the folder and the file have to be the user's and closed to others' writing, the code the same to the file's
last change, and the log's bytes the ones that were read. Anything else is as if there were no file.
"""

import os
import platform
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from stat import S_IWGRP, S_IWOTH

import msgspec
from msgspec import Struct

import vertumnus
import vertumnus_console
from vertumnus.domain.units import Nanoseconds
from vertumnus.records.atomic import write_whole
from vertumnus_console.keyframes import Keyframe

KEPT = 5
"""Runs whose states are kept, those used last."""
MARK_BYTES = 4_096
"""Of the log before the place that a state was read up to, to know it again by."""


class _Shelved(Struct, frozen=True, array_like=True):
    code: str
    mark: bytes
    at: Nanoseconds
    events: int
    place: int
    state: bytes


class Shelf:
    """Where the state of one run is kept."""

    def __init__(self, log: Path, folder: Path | None = None) -> None:
        """Keep states of *log* in *folder*, by default one among the user's caches."""
        self._log = log
        self._folder = folder or _caches() / "vertumnus" / "console"
        self._file = self._folder / f"{_digest(str(log.resolve()).encode()).hex()}.state"
        self.events = 0
        """Of the newest state that was put here or taken."""

    def newest(self) -> Keyframe | None:
        """Return the state that is kept; None when there is none that may be used."""
        try:
            if not (_is_own(self._folder) and _is_own(self._file)):
                return None
            kept = msgspec.msgpack.decode(self._file.read_bytes(), type=_Shelved)
            is_right = kept.code == _code() and kept.mark == self._mark(kept.place)
        except (OSError, msgspec.MsgspecError):
            return None
        if not is_right:
            return None
        self.events = kept.events
        return Keyframe(kept.at, kept.events, kept.place, kept.state)

    def put(self, frame: Keyframe) -> None:
        """Keep *frame* if it is newer than what is here; where it cannot be written, go without."""
        if frame.events <= self.events:
            return
        self.events = frame.events
        with suppress(OSError):
            shelved = _Shelved(
                _code(), self._mark(frame.place), frame.at, frame.events, frame.place, frame.state
            )
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._file, lambda file: file.write(msgspec.msgpack.encode(shelved)))
            self._clear()

    def _clear(self) -> None:
        """Take away the states of runs that were looked at before the last `KEPT`."""
        files = sorted(self._folder.glob("*.state"), key=lambda file: file.stat().st_mtime_ns)
        for file in files[:-KEPT]:
            file.unlink(missing_ok=True)

    def _mark(self, place: int) -> bytes:
        with self._log.open("rb") as file:
            file.seek(max(0, place - MARK_BYTES))
            return _digest(file.read(min(place, MARK_BYTES)) + place.to_bytes(8, "big"))


def _caches() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _is_own(path: Path) -> bool:
    status = path.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (S_IWGRP | S_IWOTH)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


@cache
def _code() -> str:
    """Return what changes with any change of what states are made of: our source, Python, msgspec."""
    told = [platform.python_version(), msgspec.__version__]
    for package in (vertumnus, vertumnus_console):
        folder = Path(package.__file__ or "").parent
        for file in sorted(folder.rglob("*.py")):
            status = file.stat()
            told.append(f"{file} {status.st_size} {status.st_mtime_ns}")
    return _digest("\n".join(told).encode()).hex()
