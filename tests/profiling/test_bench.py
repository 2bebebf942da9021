"""The benchmarks: each reports positive numbers under its names, and the tool says what is wrong."""

import gc
import json
from pathlib import Path

import pytest

from vertumnus.domain.errors import ConfigError
from vertumnus.domain.extras import installing
from vertumnus.run.simulated import rare_collections
from vertumnus_profiling.bench import __main__ as bench
from vertumnus_profiling.bench import catalogue
from vertumnus_profiling.bench.machine import CpuTicks, busy_share, load_warning, parse_ticks
from vertumnus_profiling.bench.matching import SetIndex
from vertumnus_profiling.bench.measure import (
    Result,
    Settings,
    Skipped,
    ratios,
    result,
)

NAMES_AND_UNITS = {
    "placement": {
        f"placement/{policy}/{workers}_workers/{percentile}": "us"
        for policy in ("vertumnus", "paper")
        for workers in (15, 1000)
        for percentile in ("p50", "p99")
    },
    "match": {"match/index": "1/s", "match/sets": "1/s", "match/index_over_sets": "x"},
    "block_cache": {"block_cache/cycle": "ns"},
    "ledger": {"ledger/request": "ns"},
    "index": {"index/install": "ns", "index/evict": "ns"},
    "scan": {"scan/2000_blocks": "us"},
    "log": {"log/append": "us", "log/read": "us"},
    "fold": {"fold/record": "us"},
    "simulator": {
        "simulator/recorded": "1/s",
        "simulator/unrecorded": "1/s",
        "simulator/recorded_over_unrecorded": "x",
    },
    "trace": {"trace/mooncake": "1/s", "trace/parquet": "1/s"},
}
LIVE_NAMES_AND_UNITS = {
    "cp_speedup": {
        "cp_speedup/256_tokens/cp1": "us",
        "cp_speedup/256_tokens/cp2": "us",
        "cp_speedup/256_tokens/cp1_over_cp2": "x",
    },
    "kv_movement": {
        "kv_movement/mapped": "bytes/s",
        "kv_movement/memcpy": "bytes/s",
        "kv_movement/mapped_over_memcpy": "x",
    },
    "kv_copy": {
        "kv_copy/inter_degree": "bytes/s",
        "kv_copy/plain": "bytes/s",
        "kv_copy/inter_degree_over_plain": "x",
    },
    "switch": {"switch/p50": "us", "switch/p99": "us"},
}


def measured(name: str, folder: Path) -> dict[str, Result]:
    """Return what benchmark *name* reports in its quick form, by result name."""
    outcomes = list(catalogue.run([name], Settings(scratch=folder, repeats=2, quick=True)))
    results = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    assert len(results) == len(outcomes), outcomes
    return {each.name: each for each in results}


def check_results(results: dict[str, Result], expected: dict[str, str]) -> None:
    """Fail unless *results* have the expected names and units and consistent positive numbers."""
    assert {name: each.unit for name, each in results.items()} == expected
    for each in results.values():
        assert 0 < each.p10 <= each.median <= each.p90 < float("inf")
        assert each.n == 2
        assert each.per_repeat >= 1


@pytest.mark.parametrize("name", NAMES_AND_UNITS)
def test_a_benchmark_reports_its_numbers(name: str, tmp_path: Path) -> None:
    """Names and units are the documented ones, every number is positive, repeats are counted."""
    check_results(measured(name, tmp_path), NAMES_AND_UNITS[name])


@pytest.mark.live
@pytest.mark.parametrize("name", LIVE_NAMES_AND_UNITS)
def test_a_benchmark_of_the_live_engine_reports_its_numbers(name: str, tmp_path: Path) -> None:
    """The same for those that compute with torch; the pair of ranks ends with the benchmark."""
    pytest.importorskip("torch")
    check_results(measured(name, tmp_path), LIVE_NAMES_AND_UNITS[name])


def test_every_benchmark_is_known_here() -> None:
    """A new benchmark must say here which numbers it reports."""
    assert [*NAMES_AND_UNITS, *LIVE_NAMES_AND_UNITS] == list(catalogue.BENCHMARKS)


def test_without_torch_the_live_benchmarks_are_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is missing and how to get it; the other benchmarks go on."""
    monkeypatch.setattr(catalogue, "find_spec", lambda module: None if module == "torch" else object())
    outcomes = list(catalogue.run(["kv_movement", "ledger"], Settings(scratch=tmp_path, quick=True)))
    reason = f"torch not installed ({installing('live')})"
    assert outcomes[0] == Skipped("kv_movement", reason)
    assert isinstance(outcomes[1], Result)


def test_the_command_shows_and_writes_the_same_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line for each result, and a JSON file with the machine beside them."""
    monkeypatch.setattr(bench, "WATCH_S", 0.0)
    file = tmp_path / "bench.json"
    assert bench.main(["--quick", "--repeats", "1", "--json", str(file), "index", "ledger"]) == 0
    document = json.loads(file.read_text())
    names = [each["name"] for each in document["results"]]
    assert names == ["ledger/request", "index/install", "index/evict"]
    assert document["machine"]["cores"] >= 1
    assert document["skipped"] == []
    assert 0 <= (document["others_while_measuring"] or 0.0) <= 1  # null when no tick has passed
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-3:]] == names


def test_every_bad_name_is_reported_with_the_allowed_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, all bad names at once, nothing measured."""
    assert bench.main(["ledgr", "match", "xyz"]) == 2
    captured = capsys.readouterr()
    assert "ledgr: no such benchmark; did you mean ledger? (allowed: placement, match, " in captured.err
    assert "xyz: no such benchmark (allowed: placement, " in captured.err
    assert captured.out == ""


def test_every_bad_option_is_reported_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was found and what is allowed, before anything is measured."""
    missing = tmp_path / "no" / "such"
    options = ["--repeats", "0", "--json", str(missing), "--trace", str(missing)]
    assert bench.main([*options, "ledger"]) == 2
    errors = capsys.readouterr().err
    assert "--repeats: found 0, must be at least 1" in errors
    assert f"--json: there is no folder {missing.parent}" in errors
    assert f"--trace: there is no file {missing}" in errors
    assert "--trace: has no effect without the benchmark match" in errors


def test_a_bad_trace_is_told_apart_from_a_crash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reader's message, exit code 2."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text("{}\n")
    assert bench.main(["--quick", "--trace", str(trace), "match"]) == 2
    assert "trace.jsonl" in capsys.readouterr().err


def test_a_selection_runs_in_the_catalogue_s_order_without_repeats() -> None:
    """The order of the names on the command line does not matter; no names mean all."""
    assert catalogue.select(["log", "match", "log"]) == ["match", "log"]
    assert catalogue.select([]) == list(catalogue.BENCHMARKS)
    with pytest.raises(ConfigError):
        catalogue.select(["match", ""])


def test_median_and_spread_of_repeats() -> None:
    """Percentiles interpolate: of 0, 10, .., 100 they are 10, 50 and 90."""
    found = result("x", "ns", [float(value) for value in range(100, -1, -10)], 3)
    assert (found.p10, found.median, found.p90, found.n, found.per_repeat) == (10.0, 50.0, 90.0, 11, 3)
    assert ratios([6.0, 8.0], [3.0, 2.0]) == [2.0, 4.0]


def test_the_garbage_collector_is_as_before_afterwards() -> None:
    """Rare only inside, also when the measured code raises."""
    before = gc.get_threshold()
    with pytest.raises(RuntimeError), rare_collections():
        assert gc.get_threshold()[0] > before[0]
        raise RuntimeError
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def test_sets_match_a_hand_worked_prompt() -> None:
    """A worker's count ends at the first block that it lacks, whatever it holds later."""
    index = SetIndex(3)
    index.install((1, 2, 3), 0)
    index.install((1,), 1)
    index.install((2, 3), 2)
    assert index.match((1, 2, 3, 4)) == [3, 1, 0]


def test_cpu_ticks_count_idle_and_waiting_apart_and_guests_once() -> None:
    """user 40 + nice 1 + system 9 + irq 2 + softirq 3 + steal 5 = 60 busy of 200."""
    ticks = parse_ticks("cpu  40 1 9 130 10 2 3 5 30 1\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    assert ticks == CpuTicks(60, 200)
    assert busy_share(ticks, CpuTicks(90, 300)) == 0.3
    assert busy_share(ticks, ticks) is None
    assert busy_share(ticks, CpuTicks(59, 201)) == 0.0
    assert busy_share(None, ticks) is None


@pytest.mark.parametrize(("share", "warns"), [(0.2, False), (0.21, True), (None, False)])
def test_a_busy_machine_is_warned_about(share: float | None, warns: bool) -> None:
    """Above a fifth of the cores in other hands the reader is told."""
    expected = "others use 21% of the 4 cores: expect long times and a wide spread"
    assert load_warning(share, cores=4) == (expected if warns else None)
