"""The run's log: every fact, order and outcome in the order told, appended and never rewritten.

    file  = MAGIC, header frame, batch frame, batch frame, ...    (`frames`)

The header's payload is a LogHeader, a batch's is a list of Records, both msgpack. A kill or a full
disk can only cut the last frame: everything before it is read, and that it was cut is told. Whatever
else is no batch is an error that says where. The log carries no run id and no wall time, so that the
same seed gives the same bytes.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec
from msgspec import Struct

from vertumnus.domain.cluster import Composition, Lattice
from vertumnus.domain.codec import SCHEMA_VERSION, Body, Record, decode_batch, encode_batch
from vertumnus.domain.errors import ConfigError, VertumnusError
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.units import Tokens
from vertumnus.records.config import Measurement
from vertumnus.records.frames import DamagedFrame, TornFrame, frame, read_frame

MAGIC = b"vertumnus log\n"
BATCH_RECORDS = 512
"""Records a frame: encoding and checksum cost below 1 us a record, a kill loses at most this many."""


class LogHeader(Struct, frozen=True, kw_only=True):
    """All that a reader needs to redo or measure the run."""

    schema_version: int = SCHEMA_VERSION
    code_version: str
    config: dict[str, Any]
    """The resolved configuration as plain values."""
    profile: ModelProfile
    lattice: Lattice
    composition: Composition
    """Workers at time 0."""
    block_tokens: Tokens
    seed: int
    backend: Literal["sim", "live"]
    longest_prompt: Tokens | None = None
    """Of the requests to come; None in logs from before that was noted."""
    records: Measurement = Measurement()

    @property
    def keeps_wall_time(self) -> bool:
        """Whether the run keeps to the wall clock: executed, or simulated at a pace."""
        return self.backend == "live" or self.config.get("backend", {}).get("clock") == "paced"


class LogWriteError(VertumnusError):
    """The log could not be extended; what it held before is intact."""


class LogWriter:
    """Appends records to a new log; holds the file's lock until closed, which marks the run as going."""

    def __init__(
        self, path: Path, header: LogHeader, written: Callable[[list[Record]], object] | None = None
    ) -> None:
        """Create *path*, which must not exist, and write *header*; raises LogWriteError.

        *written* is told each batch of records once the file has it.
        """
        self._path = path
        self._tell = written
        self._batch: list[Record] = []
        self._written = 0
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        except OSError as error:
            raise LogWriteError(f"{path}: cannot create the log: {error.strerror}") from error
        try:
            self._write(MAGIC + frame(msgspec.msgpack.encode(header)))
        except LogWriteError:
            os.close(self._fd)
            raise

    def append(self, source: int, body: Body) -> None:
        """Add one record; it reaches the file with its batch. Raises LogWriteError."""
        batch = self._batch
        batch.append(Record(source, body))
        if len(batch) >= BATCH_RECORDS:
            self.flush()

    def flush(self) -> None:
        """Write the records held back so far as a frame of their own.

        Raises LogWriteError when the disk refuses; the records are kept for another try.
        """
        if self._batch:
            self._write(frame(encode_batch(self._batch)))
            batch, self._batch = self._batch, []
            if self._tell is not None:
                self._tell(batch)

    def close(self) -> None:
        """Write what is held back, bring it to the disk, release the lock; safe to call twice."""
        if self._fd < 0:
            return
        try:
            self.flush()
            os.fsync(self._fd)
        finally:
            os.close(self._fd)
            self._fd = -1

    def _write(self, whole: bytes) -> None:
        done = 0
        try:
            while done < len(whole):
                done += os.write(self._fd, whole[done:])
        except OSError as error:
            # cut the torn frame off, so that a later one lands where readers look for it
            os.ftruncate(self._fd, self._written)
            os.lseek(self._fd, self._written, os.SEEK_SET)
            kept = f"the log is intact up to byte {self._written}"
            raise LogWriteError(f"{self._path}: cannot append: {error.strerror}; {kept}") from error
        self._written += done


class LogDamaged(ConfigError):
    """A log that is not what was written, from some record on, and goes on after it."""

    def __init__(self, path: Path, place: int, what: str) -> None:
        """Name the record that should begin at byte *place* of *path*; before it, all is well."""
        record = _records_before(path, place)
        super().__init__(f"{path}: damaged at byte {place}, where record {record} should be: {what}")


class LogRecords(Iterator[Record]):
    """The records of a log, in order; raises LogDamaged where the log is."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.truncated = False
        """After the last record: whether the log's end is torn; a killed writer's is."""
        self._file = file
        self._records = _records(path, file)

    def close(self) -> None:
        """Read no more; after the last record it is done already."""
        self._file.close()

    def __next__(self) -> Record:
        try:
            return next(self._records)
        except StopIteration as end:
            self.truncated = self.truncated or bool(end.value)
            raise


def _records(path: Path, file: BinaryIO) -> Generator[Record, None, bool]:
    """Tell the records from where *file* stands; return whether its end is torn."""
    with file:
        try:
            while (batch := _next_batch(path, file)) is not None:
                yield from batch
        except TornFrame:
            return True
    return False


class ReadLog(NamedTuple):
    """An opened log."""

    header: LogHeader
    records: LogRecords


def read_log(path: Path) -> ReadLog:
    """Open the log at *path*: its header, and its records as they are read.

    Raises ConfigError when there is no file, it is no log, or one of another schema.
    """
    header, file = _opened(path)
    return ReadLog(header, LogRecords(path, file))


class GrowingLog:
    """A log that may still be written, read as far as it is whole."""

    def __init__(self, path: Path) -> None:
        """Open the log at *path*; raises ConfigError as `read_log` does."""
        # unbuffered: what is read of a torn frame must not outlive the writer's second try at it
        self.header, self._file = _opened(path, buffering=0)
        self._path = path

    @property
    def place(self) -> int:
        """Where the next batch begins, for `go_to`."""
        return self._file.tell()

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return os.fstat(self._file.fileno()).st_size

    def go_to(self, place: int) -> None:
        """Read on at *place*, one that this log told."""
        self._file.seek(place)

    def next_batch(self) -> list[Record] | None:
        """Return the next batch of records; None while it is not whole, and then it can be asked again.

        Raises LogDamaged.
        """
        place = self._file.tell()
        try:
            return _next_batch(self._path, self._file)
        except TornFrame:
            self._file.seek(place)
            return None

    @property
    def is_torn(self) -> bool:
        """Whether there is something after the last batch read; after the last whole one, its end is torn."""
        return self.size > self.place

    def close(self) -> None:
        """Close the file; safe to call twice."""
        self._file.close()


def is_locked(path: Path) -> bool:
    """Return whether a process is still writing the log at *path*."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _opened(path: Path, buffering: int = -1) -> tuple[LogHeader, BinaryIO]:
    """Return the header of the log at *path* and the file, which stands at its first batch."""
    try:
        file = path.open("rb", buffering)
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the log: {error.strerror}") from error
    try:
        return _read_header(path, file), file
    except BaseException:
        file.close()
        raise


def _next_batch(path: Path, file: BinaryIO) -> list[Record] | None:
    """Return the next batch, None at the end of the file; raises TornFrame or LogDamaged."""
    place = file.tell()
    try:
        payload = read_frame(file)
        return None if payload is None else decode_batch(payload)
    except DamagedFrame as error:
        raise LogDamaged(path, place, "it does not fit its checksum, and whole records follow") from error
    except msgspec.MsgspecError as error:
        raise LogDamaged(path, place, f"no record of schema {SCHEMA_VERSION}: {error}") from error


def _records_before(path: Path, place: int) -> int:
    records, (_, file) = 0, _opened(path)
    with file:
        while file.tell() < place:
            records += len(decode_batch(read_frame(file) or b""))
    return records


class _AnySchema(Struct):
    schema_version: int


def _read_header(path: Path, file: BinaryIO) -> LogHeader:
    if file.read(len(MAGIC)) != MAGIC:
        raise ConfigError(f"{path}: not a log of vertumnus (it does not start with {MAGIC!r})")
    try:
        payload = read_frame(file) or b""
        version = msgspec.msgpack.decode(payload, type=_AnySchema).schema_version
    except (DamagedFrame, TornFrame, msgspec.MsgspecError) as error:
        raise ConfigError(f"{path}: the log's header is cut or damaged") from error
    if version != SCHEMA_VERSION:
        raise ConfigError(f"{path}: found log schema {version}, this version reads schema {SCHEMA_VERSION}")
    try:
        return msgspec.msgpack.decode(payload, type=LogHeader)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path}: the log's header does not fit schema {version}: {error}") from error
