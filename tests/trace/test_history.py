"""Historical slices: which requests they are, and which would size a run on what it is judged on."""

import json
from pathlib import Path

import pytest
from msgspec import structs

from vertumnus.domain.errors import ConfigError
from vertumnus.trace.config import ArrivalConfig, WorkloadConfig
from vertumnus.trace.history import (
    History,
    OtherSeed,
    OtherTrace,
    WorkloadHead,
    history_problems,
    read_slice,
)
from vertumnus.trace.load import load_rows

GENERATED = WorkloadConfig(name="g", purpose="generated", generator="tool_agent", requests=400)
TRACE = ArrivalConfig()


def a_trace(path: Path, requests: int = 10, gap_ms: int = 1_000) -> Path:
    """A file of *requests* requests, *gap_ms* apart."""
    rows = (
        {"timestamp": n * gap_ms, "input_length": 512, "output_length": 1, "hash_ids": [n]}
        for n in range(requests)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def replayed(path: Path, start_s: float = 0.0, duration_s: float | None = None) -> WorkloadConfig:
    """The workload that replays a window of *path*."""
    return WorkloadConfig(
        name="t", purpose="a trace", path=str(path), unit="ms", start_s=start_s, duration_s=duration_s
    )


def test_the_head_is_as_long_as_the_warm_up() -> None:
    """15 % of 400 requests, at the times at which the run sees them; a share of its own wins."""
    arrival = ArrivalConfig(rate=40.0)
    rows = load_rows(GENERATED, arrival, 3).rows
    assert read_slice(WorkloadHead(), GENERATED, arrival, 3, 0.15).trace.rows == rows[:60]
    half = read_slice(WorkloadHead(share=0.5, in_sample=True), GENERATED, arrival, 3, 0.15)
    assert half.trace.rows == rows[:200]
    assert half.trace.description.startswith("the first 200 of tool_agent generator, seed 3")


def test_another_seed_is_the_same_window_drawn_anew() -> None:
    """400 requests of seed 9 at the run's rate."""
    found = read_slice(OtherSeed(seed=9), GENERATED, ArrivalConfig(rate=40.0), 3, 0.15)
    assert found.trace.rows == load_rows(GENERATED, ArrivalConfig(rate=40.0), 9).rows
    assert found.rate == pytest.approx(40.0)


def test_another_trace_brings_its_own_window(tmp_path: Path) -> None:
    """Ten requests, one a second: of [2 s, 6 s) there are four, whatever window the run has."""
    path = a_trace(tmp_path / "earlier.jsonl")
    workload = structs.replace(GENERATED, requests=2)
    found = read_slice(OtherTrace(path=str(path), start_s=2.0, duration_s=4.0), workload, TRACE, 0, 0.15)
    assert (len(found.trace.rows), found.rate) == (4, pytest.approx(1.0))


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (WorkloadHead(share=0.2), "initial.share: found 0.2"),
        (OtherSeed(seed=0), "initial.seed: found 0, the run's own seed"),
    ],
)
def test_a_slice_of_what_is_judged_has_to_be_meant(history: History, said: str) -> None:
    """Refused with what is allowed, unless in_sample says so."""
    (problem,) = history_problems(history, GENERATED, 0, 0.15)
    assert problem.startswith(said) and problem.endswith("or initial.in_sample=true")
    assert list(history_problems(structs.replace(history, in_sample=True), GENERATED, 0, 0.15)) == []
    assert list(history_problems(history, GENERATED, 1, 0.2)) == []


@pytest.mark.parametrize(
    ("slice_window", "run_window", "overlap"),
    [
        ((0.0, 5.0), (5.0, None), False),
        ((0.0, 5.1), (5.0, None), True),
        ((5.0, None), (0.0, 5.0), False),
        ((0.0, None), (3.0, 1.0), True),
        ((4.0, 2.0), (3.0, 1.0), False),
    ],
)
def test_an_earlier_hour_of_the_same_file_is_another_time(
    tmp_path: Path,
    slice_window: tuple[float, float | None],
    run_window: tuple[float, float | None],
    overlap: bool,
) -> None:
    """Windows of one file must not share a moment; other files never do."""
    path = a_trace(tmp_path / "day.jsonl")
    start_s, duration_s = slice_window
    history = OtherTrace(path=f"{path.parent}/./day.jsonl", start_s=start_s, duration_s=duration_s)
    problems = list(history_problems(history, replayed(path, *run_window), 0, 0.15))
    assert [problem.startswith("initial.path: found") for problem in problems] == [True] * overlap
    elsewhere = replayed(tmp_path / "other.jsonl", *run_window)
    assert list(history_problems(history, elsewhere, 0, 0.15)) == []
    mixed = structs.replace(elsewhere, mix=(str(path),))
    assert len(list(history_problems(history, mixed, 0, 0.15))) == overlap


def test_a_file_has_no_other_seed(tmp_path: Path) -> None:
    """Only a generator draws anew."""
    (problem,) = history_problems(OtherSeed(seed=1), replayed(tmp_path / "day.jsonl"), 0, 0.15)
    assert "use initial=head or initial=other_trace" in problem


def test_a_run_without_warm_up_has_no_head() -> None:
    """The default share would be no request at all."""
    (problem,) = history_problems(WorkloadHead(), GENERATED, 0, 0.0)
    assert problem.startswith("initial.share: found null, which is records.warmup_share, but that is 0")


@pytest.mark.parametrize(("requests", "gap_ms"), [(1, 1_000), (4, 0)])
def test_a_slice_without_a_rate_is_refused(tmp_path: Path, requests: int, gap_ms: int) -> None:
    """One request, or all at once, tell no demand."""
    path = a_trace(tmp_path / "short.jsonl", requests, gap_ms)
    with pytest.raises(ConfigError, match=rf"the slice holds {requests} requests? at one instant"):
        read_slice(OtherTrace(path=str(path)), GENERATED, TRACE, 0, 0.15)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: WorkloadHead(share=0.0), r"share must be in \(0, 1\], got 0.0"),
        (lambda: OtherSeed(seed=-1), "seed must be at least 0, got -1"),
        (lambda: OtherTrace(path="x", start_s=-1.0), "start_s must be at least 0, got -1"),
        (lambda: OtherTrace(path="x", duration_s=0.0), "duration_s must be above 0, got 0"),
    ],
)
def test_each_bound_is_told(make, said) -> None:
    """Key, bound and what was found."""
    with pytest.raises(ValueError, match=said):
        make()
