"""A trace is read row by row: sorted on the way, whole or in part, with little of it in memory."""

import json
import tracemalloc
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.traces import a_line, a_row, a_workload, rows_at, write_trace
from vertumnus.domain.errors import ConfigError
from vertumnus.trace.config import ArrivalConfig
from vertumnus.trace.files import REORDER_ROWS, OutOfOrder, TraceFiles, in_order
from vertumnus.trace.formats.parquet import About, ParquetRows, write_rows
from vertumnus.trace.load import load_rows
from vertumnus.trace.rows import TraceRow


@given(st.lists(st.integers(0, 8), max_size=30), st.integers(1, 12))
def test_rows_are_sorted_on_the_way_or_not_at_all(arrivals: list[int], held: int) -> None:
    """What comes out is the stable sort, whatever little is held, or the rows are refused."""
    rows = rows_at(*arrivals)
    expected = sorted(rows, key=lambda row: row.arrival_ns)
    try:
        assert list(in_order(rows, held)) == expected
    except OutOfOrder:
        late = max(sum(other > arrival for other in arrivals[:i]) for i, arrival in enumerate(arrivals))
        assert late >= held
    assert list(in_order(rows, len(rows) + 1)) == expected


def test_a_file_in_any_order_is_sorted(tmp_path: Path) -> None:
    """More rows out of order than are held on the way are held as a whole."""
    stamps = [*range(REORDER_ROWS + 50), 0]
    path = write_trace(tmp_path / "t.jsonl", *(a_line(timestamp=37 * stamp) for stamp in stamps))
    workload = a_workload(path=str(path))
    with pytest.raises(OutOfOrder):
        list(TraceFiles(workload))
    rows = load_rows(workload, ArrivalConfig(), 0).rows
    assert [row.arrival_ns for row in rows] == [37_000_000 * stamp for stamp in sorted(stamps)]


def test_a_window_of_a_large_file_takes_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8,000 rows with 20 ids each would take 11 MB; ten of them are wanted, and 500 held to sort."""
    monkeypatch.setattr("vertumnus.trace.files.REORDER_ROWS", 500)
    path = tmp_path / "t.jsonl"
    with path.open("w") as file:
        for number in range(8_000):
            ids = list(range(10**6 + 20 * number, 10**6 + 20 * number + 20))
            file.write(a_line(timestamp=100 * number, input_length=10_000, hash_ids=ids) + "\n")
    workload = a_workload(path=str(path), requests=10, start_s=500.0)
    tracemalloc.start()
    try:
        trace = load_rows(workload, ArrivalConfig(), 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(trace.rows) == 10 and "10 of 8,000 requests" in trace.description
    assert peak < 2 * 2**20


ROWS = st.builds(
    TraceRow,
    st.integers(0, 2**62),
    st.integers(1, 2**31),
    st.integers(0, 2**31),
    st.none() | st.lists(st.integers(0, 2**63 - 1), max_size=4).map(tuple),
    st.none() | st.text(max_size=5),
    st.none() | st.text(max_size=5),
    st.none() | st.integers(0, 2**62),
)


@settings(max_examples=25)
@given(st.lists(ROWS, max_size=20))
def test_parquet_gives_back_every_row(rows: list[TraceRow]) -> None:
    """Every field of every row, none and empty told apart; and what the file says of itself."""
    about = About(block_tokens=16, has_times=False)
    file = BytesIO()
    assert write_rows(file, rows, about) == len(rows)
    found = ParquetRows(BytesIO(file.getvalue()))  # type: ignore[arg-type]
    assert (found.about, found.has_times) == (about, False)
    assert list(found) == list(enumerate(rows, start=1))


def test_a_parquet_trace_is_loaded_as_any_other(tmp_path: Path) -> None:
    """Its own block size counts; another one is refused with the one that it says."""
    path = tmp_path / "t.parquet"
    with path.open("wb") as file:
        write_rows(file, [a_row(5, 40, 3, (1, 2, 3))], About(block_tokens=16))
    loaded = load_rows(a_workload(path=str(path), format="parquet", block_tokens=16), ArrivalConfig(), 0)
    assert loaded.rows == [a_row(0, 40, 3, (1, 2, 3))]
    with pytest.raises(
        ConfigError, match=r"workload.block_tokens: found 512, must be 16, as .*t.parquet says"
    ):
        load_rows(a_workload(path=str(path), format="parquet"), ArrivalConfig(), 0)


def test_what_is_no_parquet_trace_is_told(tmp_path: Path) -> None:
    """A missing file, another kind of file, a cut one, and Parquet of something else."""
    path = tmp_path / "t.parquet"

    def problem() -> str:
        with pytest.raises(ConfigError) as error:
            load_rows(a_workload(path=str(path), format="parquet"), ArrivalConfig(), 0)
        return str(error.value)

    assert f"workload.path: no file '{path}'" in problem()
    path.write_text(json.dumps({"a": 1}))
    assert "not a Parquet file" in problem()
    pq.write_table(pa.table({"a": [1]}), path)
    assert (
        "not a trace that vertumnus trace convert wrote; found the columns a, must be arrival_ns" in problem()
    )
    with path.open("wb") as file:
        write_rows(file, [a_row()] * 5, About(block_tokens=512))
    path.write_bytes(path.read_bytes()[:-40])
    assert "not a Parquet file, or a damaged one" in problem()
