"""Forecasts as rows and as a report: what was predicted, what was done, what came, what hindsight says."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.recorded import a_forecast, a_header, a_history, a_merge, a_run, a_ulid, told_in_order
from vertumnus.domain.codec import INPUT, Record
from vertumnus.domain.facts import ForecastFailed
from vertumnus.domain.units import SECOND
from vertumnus.records.folds import RunFolds
from vertumnus.report.reports import answer_report

MERGE = "merge 2x1 + 3x1 -> 2x2"


def folded(*lives: list[Record]) -> RunFolds:
    """Return the folds of a dozen requests and *lives*."""
    folds = RunFolds(a_header())
    folds.apply(told_in_order([a_history(12), *lives]))
    folds.finish()
    return folds


def test_a_forecast_has_a_row_for_each_candidate(tmp_path: Path) -> None:
    """Seconds, NULL where there is nothing to say, and the move made, whose drain came with the answer."""
    told = told_in_order([a_history(12), a_forecast(19 * SECOND), a_merge(20 * SECOND)])
    run = a_run(tmp_path, a_ulid(0), told)
    stay, merge = pq.read_table(run.table("forecasts")).drop_columns("schema_version").to_pylist()
    assert (stay["move"], stay["made"], stay["ttft_mean_s"], stay["drain_s"]) == (None, False, 4.0, None)
    assert merge == {
        "forecast_id": 1,
        "t_ns": 19 * SECOND,
        "span_s": 10.0,
        "repeats": 1,
        "load": 1.25,
        "hindsight_of": None,
        "status": "answered",
        "reason": None,
        "answer_s": 1.0,
        "made": True,
        "move": MERGE,
        "requests": 8,
        "served": 7,
        "ttft_mean_s": 3.0,
        "ttft_p90_s": 4.0,
        "slo_attainment": None,
        "drain_s": 2.0,
        "switch_s": 1.0,
        "missing_blocks": 0,
        "copied_blocks": 2,
        "copied_bytes": 512,
    }


def test_staying_is_what_was_done_when_nothing_drains_with_the_answer() -> None:
    """A drain of the same workers later, or of others at once, makes no move of the forecast's."""
    rows = folded(a_forecast(18 * SECOND), a_merge(20 * SECOND)).forecasts
    assert [row.made for row in rows] == [True, False]


def test_a_forecast_without_an_answer_has_one_row() -> None:
    """It failed, with the reason, or the run ended first."""
    failed = [*a_forecast(3 * SECOND)[:2], Record(INPUT, ForecastFailed(4 * SECOND, 1, "killed"))]
    cut = a_forecast(9 * SECOND, 2)[:2]
    told = [(row.status, row.reason, row.outcome, row.answer_ns) for row in folded(failed, cut).forecasts]
    assert told == [("failed", "killed", None, SECOND), ("interrupted", None, None, None)]


def test_an_answer_to_nothing_is_passed_over() -> None:
    """A cut log may hold an answer whose order is lost."""
    assert folded(a_forecast(3 * SECOND)[2:]).forecasts == []


def test_the_report_by_hand(tmp_path: Path) -> None:
    """At 5 s it looks as far as 15 s: requests 3 to 15 had no first token; hindsight stands beside it."""
    hindsight = a_forecast(15 * SECOND, 2, hindsight_of=1)
    a_run(tmp_path, a_ulid(1), told_in_order([a_history(18), a_forecast(5 * SECOND), hindsight]))
    (row,) = answer_report(tmp_path, "forecasts", a_ulid(1)).dicts()
    # TTFT of request n is n mod 4 quarters of a second of queue, 2 s of prefill, half a second of hand-off
    counted = [n for n in range(16) if n + 2.5 + n % 4 / 4 > 5.0]
    observed = sum(2.5 + n % 4 / 4 for n in counted) / len(counted)
    assert (row["move"], row["made"], row["stay_ttft_s"], row["move_ttft_s"]) == (MERGE, False, 4.0, 3.0)
    assert row["gain"] == row["hindsight_gain"] == 0.25
    assert row["observed_ttft_s"] == pytest.approx(observed)
    assert (row["requests"], row["observed_requests"]) == (8, len(counted))


@pytest.mark.parametrize(("requests", "is_observed"), [(15, False), (16, True)])
def test_what_did_not_come_was_not_observed(tmp_path: Path, requests: int, is_observed: bool) -> None:
    """A forecast as far as 15 s has something to be compared with once requests arrived until 15 s."""
    a_run(tmp_path, a_ulid(1), told_in_order([a_history(requests), a_forecast(5 * SECOND)]))
    (row,) = answer_report(tmp_path, "forecasts", a_ulid(1)).dicts()
    assert (row["observed_ttft_s"] is not None) == is_observed
    assert row["observed_requests"] == requests - 3
