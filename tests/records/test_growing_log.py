"""A log is read while it is written: whole batches only, each once, a torn one later."""

import os
from pathlib import Path

import pytest

from tests.support.recorded import a_header, a_history
from vertumnus.domain.errors import ConfigError
from vertumnus.records import frames
from vertumnus.records.log import GrowingLog, LogDamaged, LogWriter


def a_written_log(path: Path, records: int) -> tuple[bytes, int]:
    """Return the bytes of a log with one batch a record, and where its first batch starts."""
    writer = LogWriter(path, a_header())
    first = path.stat().st_size
    for record in a_history(3)[:records]:
        writer.append(*record)
        writer.flush()
    writer.close()
    return path.read_bytes(), first


def test_batches_come_when_they_are_whole(tmp_path: Path) -> None:
    """Byte by byte, a reader is told each batch exactly once, as soon as its last byte is there."""
    content, first = a_written_log(tmp_path / "whole", records=4)
    path = tmp_path / "facts.log"
    path.write_bytes(content[:first])
    log, read = GrowingLog(path), []
    with path.open("ab", buffering=0) as file:
        for place in range(first, len(content)):
            file.write(content[place : place + 1])
            while (batch := log.next_batch()) is not None:
                read.append((place + 1, batch))
    log.close()
    assert [batch for _, batch in read] == [[record] for record in a_history(3)[:4]]
    assert read[-1][0] == len(content)
    assert log.header == a_header()


def test_a_torn_batch_may_be_written_anew(tmp_path: Path) -> None:
    """A writer that cuts a torn batch off and writes another there is followed."""
    content, first = a_written_log(tmp_path / "whole", records=1)
    other, _ = a_written_log(tmp_path / "other", records=2)
    path = tmp_path / "facts.log"
    path.write_bytes(content[: first + 9] + b"\xff" * 5)
    log = GrowingLog(path)
    assert log.next_batch() is None
    path.write_bytes(other)
    assert log.next_batch() == a_history(3)[:1]
    assert log.next_batch() == a_history(3)[1:2]
    assert log.next_batch() is None
    log.close()


def test_a_writer_may_go_on_while_a_batch_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written after a reader looked how much there is makes no damage of a batch cut then."""
    content, first = a_written_log(tmp_path / "whole", records=3)
    path, fstat = tmp_path / "facts.log", os.fstat

    def looked(descriptor: int) -> os.stat_result:
        seen = fstat(descriptor)
        path.write_bytes(content)
        return seen

    for size in range(first, len(content)):
        path.write_bytes(content[:size])
        log = GrowingLog(path)
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(frames.os, "fstat", looked)
            read = [log.next_batch() for _ in range(4)]
        assert [batch for batch in read if batch] == [[record] for record in a_history(3)[:3]]
        log.close()


def test_a_cut_is_told_and_damage_is_named(tmp_path: Path) -> None:
    """Wherever a log ends its whole batches are read; a byte that is wrong before the last is an error."""
    content, first = a_written_log(tmp_path / "whole", records=3)
    ends, path = [first], tmp_path / "facts.log"
    whole = GrowingLog(tmp_path / "whole")
    while whole.next_batch() is not None:
        ends.append(whole.place)
    whole.close()
    for size in range(first, len(content)):
        path.write_bytes(content[:size])
        log = GrowingLog(path)
        batches = sum(end <= size for end in ends) - 1
        assert [log.next_batch() for _ in range(batches)] == [[record] for record in a_history(3)[:batches]]
        assert log.next_batch() is None
        assert log.is_torn == (size not in ends)
        log.close()
    for place in range(ends[1], ends[2]):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        log = GrowingLog(path)
        assert log.next_batch() == a_history(3)[:1]
        with pytest.raises(LogDamaged, match=f"damaged at byte {ends[1]}, where record 1 should be"):
            log.next_batch()
        log.close()


def test_a_log_that_is_none_is_refused(tmp_path: Path) -> None:
    """A missing file and one without a header are the user's to mend."""
    with pytest.raises(ConfigError, match="cannot read the log"):
        GrowingLog(tmp_path / "facts.log")
    (tmp_path / "facts.log").write_bytes(b"")
    with pytest.raises(ConfigError, match="not a log"):
        GrowingLog(tmp_path / "facts.log")
