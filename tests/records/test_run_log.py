"""The log keeps what was told, byte for byte, and survives cuts, damage and a full disk."""

import errno
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.recorded import a_header, a_history
from vertumnus.domain.codec import Record
from vertumnus.domain.errors import ConfigError
from vertumnus.records import log
from vertumnus.records.frames import frame
from vertumnus.records.log import LogDamaged, LogWriteError, LogWriter, is_locked, read_log


def write(path: Path, records: list[Record], flush_after: int | None = None) -> list[int]:
    """Write a log; return the file's size after each record."""
    writer = LogWriter(path, a_header())
    sizes = []
    for number, record in enumerate(records):
        writer.append(*record)
        if flush_after and number % flush_after == 0:
            writer.flush()
        sizes.append(path.stat().st_size)
    writer.close()
    return sizes


def test_round_trip(tmp_path: Path) -> None:
    """Header and records come back as they went in, over several frames."""
    told = a_history(200)
    assert len(told) > log.BATCH_RECORDS
    write(tmp_path / "facts.log", told)
    header, records = read_log(tmp_path / "facts.log")
    assert header == a_header()
    assert list(records) == told
    assert not records.truncated


def test_equal_records_give_equal_bytes(tmp_path: Path) -> None:
    """Nothing in the log comes from outside the run: no id, no wall time."""
    for name in ("a", "b"):
        write(tmp_path / name, a_history(30))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_cut_at_any_byte_keeps_every_whole_frame(tmp_path: Path) -> None:
    """Wherever a kill cuts the file, the frames before it are read and the cut is told."""
    told = a_history(3)
    whole = tmp_path / "whole"
    sizes = write(whole, told, flush_after=1)
    content = whole.read_bytes()
    header_end = _header_size(tmp_path)
    for size in range(len(content)):
        cut = tmp_path / "cut"
        cut.write_bytes(content[:size])
        if size < header_end:
            with pytest.raises(ConfigError):
                read_log(cut)
            continue
        records = read_log(cut).records
        kept = list(records)
        assert kept == told[: sum(end <= size for end in sizes)]
        assert records.truncated == (size not in {header_end, *sizes})


def _header_size(tmp_path: Path) -> int:
    write(tmp_path / "empty", [])
    return (tmp_path / "empty").stat().st_size


@settings(deadline=None)
@given(data=st.data())
def test_a_flipped_bit_is_never_read_as_a_record(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """What is read is what was told; then an error says which record, where; the last frame counts as cut."""
    path = tmp_path_factory.mktemp("log") / "facts.log"
    told = a_history(2)
    sizes = write(path, told, flush_after=1)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(sizes[0], len(content) - 1))
    content[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    whole = [end for end in sizes if end <= place]
    records, kept = read_log(path).records, []
    if place < sizes[-2]:
        with pytest.raises(
            LogDamaged, match=rf"facts\.log: damaged at byte {whole[-1]}, where record {len(whole)} "
        ):
            kept.extend(records)
    else:
        kept.extend(records)
        assert records.truncated
    assert kept == told[: len(whole)]


@pytest.mark.parametrize(
    "tail", [b"\x00" * 100, b"\xff" * 100, b"\x01", b"\x05\x00\x00\x00\x01\x02\x03\x04words"]
)
def test_what_a_crash_leaves_at_the_end_is_a_cut(tmp_path: Path, tail: bytes) -> None:
    """Zeros of a file that was grown and not written, or anything else without a whole frame in it."""
    path = tmp_path / "facts.log"
    write(path, a_history(2))
    with path.open("ab") as file:
        file.write(tail)
    records = read_log(path).records
    assert list(records) == a_history(2) and records.truncated


def test_a_batch_of_something_else_is_named(tmp_path: Path) -> None:
    """Bytes that fit their checksum and are no records are an error even at the end."""
    path = tmp_path / "facts.log"
    write(path, a_history(2))
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(frame(msgspec.msgpack.encode([[0, ["NoSuchFact", 3]]])))
    records = read_log(path).records
    with pytest.raises(LogDamaged, match=rf"byte {size}, where record 14 should be: no record of schema 1"):
        list(records)


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A missing file, another file and another schema each get one message that names the file."""
    path = tmp_path / "facts.log"
    with pytest.raises(ConfigError, match=r"facts\.log: cannot read the log"):
        read_log(path)
    path.write_text("hello, this is no log at all")
    with pytest.raises(ConfigError, match=r"facts\.log: not a log"):
        read_log(path)
    path.unlink()
    LogWriter(path, msgspec.structs.replace(a_header(), schema_version=99)).close()
    with pytest.raises(ConfigError, match=r"found log schema 99, this version reads schema 1"):
        read_log(path)


def test_a_log_is_never_overwritten(tmp_path: Path) -> None:
    """A second writer of the same file is refused."""
    LogWriter(tmp_path / "facts.log", a_header()).close()
    with pytest.raises(LogWriteError, match="cannot create the log"):
        LogWriter(tmp_path / "facts.log", a_header())


def test_the_lock_lasts_as_long_as_the_writer(tmp_path: Path) -> None:
    """A log counts as being written until its writer is closed."""
    path = tmp_path / "facts.log"
    writer = LogWriter(path, a_header())
    assert is_locked(path)
    writer.close()
    writer.close()
    assert not is_locked(path)
    assert not is_locked(tmp_path / "missing")


def test_full_disk_keeps_the_log_intact_and_the_records_for_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that stops half-way leaves no torn frame, and succeeds when there is room again."""
    path = tmp_path / "facts.log"
    told = a_history(2)
    writer = LogWriter(path, a_header())
    writer.append(*told[0])
    writer.flush()
    intact = path.read_bytes()
    for record in told[1:]:
        writer.append(*record)
    really_write, calls = os.write, []

    def nearly_full(descriptor: int, payload: bytes) -> int:
        calls.append(len(payload))
        if len(calls) == 1:
            return really_write(descriptor, payload[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(LogWriteError, match=r"facts\.log: cannot append: No space left.*intact"):
        writer.flush()
    assert path.read_bytes() == intact
    monkeypatch.undo()
    writer.close()
    assert list(read_log(path).records) == told


def test_written_batches_are_told_in_order(tmp_path: Path) -> None:
    """Whoever folds the batches has read exactly what the file holds."""
    told = a_history(100)
    heard: list[Record] = []
    writer = LogWriter(tmp_path / "facts.log", a_header(), heard.extend)
    for record in told:
        writer.append(*record)
    assert heard == told[: len(told) // log.BATCH_RECORDS * log.BATCH_RECORDS]
    writer.close()
    assert heard == told
