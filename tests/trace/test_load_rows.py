"""From a workload's config to rows: file or generator, window, lengths and arrivals together."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.traces import a_line, a_workload, write_trace
from vertumnus.domain.errors import ConfigError
from vertumnus.trace.config import ArrivalConfig
from vertumnus.trace.load import load_rows


def _write(path: Path, *stamps: float) -> str:
    lines = [a_line(timestamp=stamp, output_length=number) for number, stamp in enumerate(stamps, 1)]
    return str(write_trace(path / "t.jsonl", *lines))


def test_rows_are_sorted_by_time_then_file_order(tmp_path: Path) -> None:
    """Equal stamps keep the file's order."""
    trace = load_rows(a_workload(path=_write(tmp_path, 50, 20, 50, 20)), ArrivalConfig(), 0)
    assert [row.output_tokens for row in trace.rows] == [2, 4, 1, 3]
    assert [row.arrival_ns for row in trace.rows] == [0, 0, 30_000_000, 30_000_000]


def test_the_window_comes_before_the_scaling(tmp_path: Path) -> None:
    """A window of 2 s of the trace at twice the speed lasts 1 s and starts at 0."""
    workload = a_workload(path=_write(tmp_path, *range(0, 9_000, 500)), start_s=1.0, duration_s=2.0)
    trace = load_rows(workload, ArrivalConfig(time_scale=0.5), 0)
    assert [row.output_tokens for row in trace.rows] == [3, 4, 5, 6]
    assert [row.arrival_ns for row in trace.rows] == [0, 250_000_000, 500_000_000, 750_000_000]


def test_skipped_rows_are_counted(tmp_path: Path) -> None:
    """What was left out is in the result and not only in a warning."""
    path = write_trace(tmp_path / "t.jsonl", a_line(), a_line(output_length=0), a_line())
    trace = load_rows(a_workload(path=str(path), bad_rows="skip"), ArrivalConfig(), 0)
    assert (len(trace.rows), trace.skipped) == (2, 1)


@pytest.mark.parametrize(
    ("stamps", "unit", "message"),
    [
        ([i // 2 for i in range(120)], "ms", "must be s: the 120 rows span 59 s as s, 0.059 s as ms"),
        (range(0, 3_600_000, 30_000), "s", "must be ms: the 120 rows span 60 min as ms, 41 days as s"),
        ([i // 40 * 3_000 for i in range(400)], "s", "must be ms: the 400 rows span 27 s as ms, 8 h as s"),
    ],
)
def test_a_unit_that_makes_no_sense_is_refused(
    tmp_path: Path, stamps: Sequence[int], unit: str, message: str
) -> None:
    """Case 2: 2,034 req/s, a request in half an hour, and ticks 50 min apart show the other unit."""
    path = _write(tmp_path, *stamps)
    with pytest.raises(ConfigError) as error:
        load_rows(a_workload(path=path, unit=unit), ArrivalConfig(), 0)
    assert message in str(error.value)
    other = "s" if unit == "ms" else "ms"
    assert len(load_rows(a_workload(path=path, unit=other), ArrivalConfig(), 0).rows) == len(stamps)


def test_a_few_rows_may_have_any_pace(tmp_path: Path) -> None:
    """Nine rows in 8 ms are too few to call the unit wrong."""
    assert len(load_rows(a_workload(path=_write(tmp_path, *range(9))), ArrivalConfig(), 0).rows) == 9


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"start_s": 9.0}, "workload.start_s: no request arrives from 9 s to the end; the trace spans 2 s"),
        ({"start_s": 0.5, "duration_s": 0.25}, "no request arrives from 0.5 s to +0.25 s"),
    ],
)
def test_an_empty_window_is_refused(tmp_path: Path, fields: dict[str, object], message: str) -> None:
    """A run over nothing would end well and mean nothing."""
    with pytest.raises(ConfigError) as error:
        load_rows(a_workload(path=_write(tmp_path, 0, 1_000, 2_000), **fields), ArrivalConfig(), 0)
    assert message in str(error.value)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    """The message says how many rows were skipped on the way."""
    path = str(write_trace(tmp_path / "t.jsonl", a_line(timestamp=-1)))
    with pytest.raises(ConfigError, match=r"holds no request \(1 bad row skipped\)"):
        load_rows(a_workload(path=path, bad_rows="skip"), ArrivalConfig(), 0)


def test_the_generator_has_its_own_block_size() -> None:
    """A block size that would be ignored is an error."""
    with pytest.raises(ConfigError, match=r"workload\.block_tokens: found 16, must be 512"):
        load_rows(a_workload(block_tokens=16), ArrivalConfig(), 0)


def test_a_small_generated_run_is_described() -> None:
    """One line tells source, share and scale, and the same seed gives the same rows."""
    workload, arrival = (
        a_workload(requests=300, token_scale=1 / 16),
        ArrivalConfig(process="poisson", rate=5.0),
    )
    trace = load_rows(workload, arrival, seed=7)
    assert (len(trace.rows), trace.block_tokens) == (300, 32)
    assert trace.description == "tool_agent generator, seed 7, 300 of 23,608 requests, lengths / 16"
    assert trace == load_rows(workload, arrival, seed=7)
