"""The Mooncake reader takes good rows as they are and says exactly what is wrong with the others."""

import gzip
from pathlib import Path

import pytest

from tests.support.traces import a_line, a_row, a_workload, write_trace
from vertumnus.domain.errors import ConfigError
from vertumnus.trace.formats.reader import MOST_PROBLEMS, TraceReader


def _reader(path: Path, unit: str = "ms", block_tokens: int = 512, bad_rows: str = "error") -> TraceReader:
    workload = a_workload(path=str(path), unit=unit, block_tokens=block_tokens, bad_rows=bad_rows)
    return TraceReader(workload, path)


def _problems(path: Path, unit: str = "ms", block_tokens: int = 512, bad_rows: str = "error") -> list[str]:
    with pytest.raises(ConfigError) as error:
        list(_reader(path, unit, block_tokens, bad_rows))
    return [problem.replace(f"{path}:", "") for problem in error.value.problems]


def test_rows_come_in_file_order_with_stamps_in_nanoseconds(tmp_path: Path) -> None:
    """Unknown fields and blank lines are left alone."""
    path = write_trace(tmp_path / "t.jsonl", a_line(timestamp=3_050, session_id="x"), "", a_line())
    rows = list(_reader(path, "ms", 512))
    assert rows == [a_row(3_050_000_000, 1_000, 9, (0, 1)), a_row(0, 1_000, 9, (0, 1))]


def test_seconds_may_have_fractions(tmp_path: Path) -> None:
    """Formats in seconds carry floats; those in milliseconds do not."""
    path = write_trace(tmp_path / "t.jsonl", a_line(timestamp=1.25))
    assert [row.arrival_ns for row in _reader(path, "s", 512)] == [1_250_000_000]
    assert _problems(path) == ["1: timestamp: found 1.25, must be a whole number of ms, at least 0"]


def test_gzip_is_told_by_its_content(tmp_path: Path) -> None:
    """A packed file reads as the plain one does, whatever its name."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(gzip.compress(a_line().encode()))
    assert list(_reader(path, "ms", 512)) == [a_row(0, 1_000, 9, (0, 1))]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (a_line(timestamp=None), "timestamp: missing, must be a whole number of ms, at least 0"),
        (a_line(input_length=None), "input_length: missing, must be a whole number from 1 to 2147483647"),
        (a_line(hash_ids=None), "hash_ids: missing, must be a list of whole numbers, each at least 0"),
        (a_line(timestamp=-1), "timestamp: found -1, must be a whole number of ms, at least 0"),
        (a_line(input_length=0), "input_length: found 0, must be a whole number from 1 to 2147483647"),
        (
            a_line(output_length=0),
            "output_length: found 0, must be at least 1; "
            "empty_outputs=drop or empty_outputs=keep reads such rows",
        ),
        (
            a_line(output_length=True),
            "output_length: found true, must be a whole number from 1 to 2147483647",
        ),
        (a_line(output_length="9"), 'output_length: found "9", must be a whole number from 1 to 2147483647'),
        (a_line(input_length=1e3), "input_length: found 1000.0, must be a whole number from 1 to 2147483647"),
        (
            a_line(hash_ids=[0, -1]),
            "hash_ids: found [0,-1], must be a list of whole numbers, each at least 0",
        ),
        (a_line(hash_ids=[0, 1, 2]), "hash_ids: expected 2 blocks (ceil(1000 / 512)), found 3"),
        (a_line(hash_ids=[]), "hash_ids: expected 2 blocks (ceil(1000 / 512)), found 0"),
    ],
)
def test_a_bad_row_is_named_or_skipped_and_counted(tmp_path: Path, line: str, problem: str) -> None:
    """The message has file, line, field, what was found and what is allowed."""
    path = write_trace(tmp_path / "t.jsonl", a_line(), line, a_line())
    assert _problems(path) == [f"2: {problem}"]
    reader = _reader(path, "ms", 512, "skip")
    assert (len(list(reader)), reader.skipped) == (2, 1)


def test_all_bad_fields_of_all_bad_rows_come_at_once(tmp_path: Path) -> None:
    """Two fields of one row and a line that is no JSON are three problems."""
    bad = a_line(timestamp="x", output_length=None)
    problems = _problems(write_trace(tmp_path / "t.jsonl", a_line(), bad, "not json", a_line()))
    assert [problem.split(": ")[:2] for problem in problems] == [
        ["2", "timestamp"],
        ["2", "output_length"],
        ["3", "not a JSON object"],
    ]


def test_a_file_of_bad_rows_is_not_read_to_its_end(tmp_path: Path) -> None:
    """After MOST_PROBLEMS the reader says where it stopped, and each kind of problem once."""
    bad = [a_line(input_length=length) for length in (0, -1)]
    problems = _problems(write_trace(tmp_path / "t.jsonl", "text", *bad * 50))
    assert [problem.partition("; found")[0].partition(", must")[0] for problem in problems[:-1]] == [
        "1: not a JSON object: JSON is malformed: invalid character (byte 4)",
        "2: input_length: found 0",
    ]
    assert problems[1].endswith(f"(and {MOST_PROBLEMS - 2} more like it)")
    assert f"too many bad rows, stopped at line {MOST_PROBLEMS}; read as mooncake" in problems[-1]


@pytest.mark.parametrize("rows", [1, 2, 3 * MOST_PROBLEMS])
def test_a_file_of_another_format_is_told_by_its_first_line(tmp_path: Path, rows: int) -> None:
    """Short or long; a bad row in the middle of a good file is no reason to doubt the format."""
    lines = ["2023-11-16 18:15:46.6805900,374,44"] * rows
    path = write_trace(tmp_path / "t.csv", "TIMESTAMP,ContextTokens,GeneratedTokens", *lines)
    assert _problems(path)[-1].endswith("read as mooncake (workload.format), its first line is azure's")
    assert len(_problems(write_trace(tmp_path / "t.jsonl", a_line(), *lines[:1], a_line()))) == 1


def test_twenty_tokens_with_two_ids_need_another_block_size(tmp_path: Path) -> None:
    """Case 1: the message has file, line, expected 1 block, found 2, and the size that fits."""
    path = write_trace(tmp_path / "t.jsonl", a_line(input_length=20))
    (problem,) = _problems(path)
    assert problem.startswith("workload.block_tokens: found 512, but in 1 of the first 1 row hash_ids")
    assert "16 would fit them all" in problem
    assert "(1: hash_ids: expected 1 block (ceil(20 / 512)), found 2)" in problem
    assert list(_reader(path, "ms", 16)) == [a_row(0, 20, 9, (0, 1))]


@pytest.mark.parametrize(("true", "declared"), [(16, 512), (512, 16), (24, 512)])
def test_a_wrong_block_size_is_refused_even_when_bad_rows_are_skipped(
    tmp_path: Path, true: int, declared: int
) -> None:
    """Case 2: skipping nearly all rows would hide the mistake."""
    lines = [a_line(input_length=n, hash_ids=list(range(-(-n // true)))) for n in range(490, 5_000, 7)]
    (problem,) = _problems(write_trace(tmp_path / "t.jsonl", *lines), "ms", declared, "skip")
    assert f"found {declared}" in problem and f"{true} would fit them all" in problem


@pytest.mark.parametrize("bad_rows", ["error", "skip"])
def test_a_cut_last_line_is_an_error_whatever_bad_rows_says(tmp_path: Path, bad_rows: str) -> None:
    """What is missing behind the cut is unknown, so it cannot be counted."""
    path = write_trace(tmp_path / "t.jsonl", a_line(), a_line()[:-20], end="")
    assert _problems(path, bad_rows=bad_rows) == ["2: the file ends inside this line: it is cut"]


def test_a_missing_last_line_end_is_fine(tmp_path: Path) -> None:
    """A whole object needs no line end behind it."""
    assert len(list(_reader(write_trace(tmp_path / "t.jsonl", a_line(), end=""), "ms", 512))) == 1


def test_a_cut_gzip_names_the_line(tmp_path: Path) -> None:
    """The rows before the cut do not pass for the whole trace."""
    path = tmp_path / "t.jsonl.gz"
    packed = gzip.compress("\n".join(a_line(timestamp=i * 37) for i in range(5_000)).encode())
    path.write_bytes(packed[: len(packed) // 2])
    (problem,) = _problems(path, bad_rows="skip")
    line, text = problem.split(": ", 1)
    assert 1_000 < int(line) < 4_000
    assert text == f"the gzip stream ends early, after {int(line) - 1} whole lines: the file is cut"


def test_a_damaged_gzip_is_told(tmp_path: Path) -> None:
    """A flipped byte shows in the stream's checksum or its code."""
    path = tmp_path / "t.jsonl.gz"
    packed = bytearray(gzip.compress("\n".join(a_line(timestamp=i * 37) for i in range(500)).encode()))
    packed[-5] ^= 0xFF
    path.write_bytes(packed)
    assert "the gzip stream is damaged" in _problems(path)[0]


def test_a_missing_file_suggests_the_nearest_name(tmp_path: Path) -> None:
    """A misspelt name is told with its neighbour, a missing folder as such."""
    write_trace(tmp_path / "trace.jsonl", a_line())
    (problem,) = _problems(tmp_path / "trase.jsonl")
    assert problem == (
        f"workload.path: no file '{tmp_path}/trase.jsonl'; did you mean '{tmp_path}/trace.jsonl'?"
    )
    assert "there is no folder" in _problems(tmp_path / "nowhere" / "t.jsonl")[0]
    assert "cannot read" in _problems(tmp_path)[0]
