"""A run is VALID only when everything ended, in time, and the books balance."""

import pytest
from msgspec.structs import replace

from tests.support.recorded import BALANCED, a_header, a_history
from vertumnus.records.folds import RunFolds
from vertumnus.records.metrics import Metrics, summarise
from vertumnus.records.verdict import judge


def good_metrics() -> Metrics:
    """Return the metrics of a run in which nothing went wrong."""
    folds = RunFolds(a_header())
    folds.apply(a_history(10))
    folds.finish()
    return summarise(folds.requests, a_header().records)


def test_a_clean_run_is_valid() -> None:
    """No reason, no INVALID."""
    verdict = judge(good_metrics(), BALANCED)
    assert (verdict.verdict, verdict.reasons) == ("VALID", ())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"requests": 0}, "no request arrived"),
        ({"interrupted": 2}, "2 of 10 requests did not end"),
        ({"cached_tokens": 10**9}, "cached tokens exceed"),
        ({"send_lag_p99_s": 0.11, "ttft_mean_s": 1.0}, "p99 send lag 110 ms is above 100 ms"),
        ({"send_lag_p99_s": 0.6, "ttft_mean_s": 10.0}, "p99 send lag 600 ms is above 500 ms"),
        ({"send_lag_p99_s": 0.11, "ttft_mean_s": None}, "p99 send lag 110 ms is above 100 ms"),
    ],
)
def test_bad_metrics_are_invalid(changes: dict[str, object], said: str) -> None:
    """Each rule has its reason, with the number found."""
    (reason,) = judge(replace(good_metrics(), **changes), BALANCED).reasons
    assert said in reason


@pytest.mark.parametrize(("lag", "mean"), [(0.1, 1.0), (0.5, 10.0), (None, None)])
def test_lag_within_the_limit_is_valid(lag: float | None, mean: float | None) -> None:
    """100 ms, or 5 % of the mean TTFT when that is more, are allowed."""
    assert judge(replace(good_metrics(), send_lag_p99_s=lag, ttft_mean_s=mean), BALANCED).verdict == "VALID"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ledger_ns": 5}, "5 ns of predicted work stayed reserved"),
        ({"pinned_blocks": 3}, "3 blocks stayed pinned"),
        ({"blocks_held": 6}, "7 blocks in use, but 6 held by the caches"),
        ({"problems": ("the pool lost a rank",)}, "the pool lost a rank"),
    ],
)
def test_unbalanced_books_are_invalid(changes: dict[str, object], said: str) -> None:
    """Whatever is left over at the end is said."""
    assert judge(good_metrics(), replace(BALANCED, **changes)).reasons == (said,)


def test_an_interruption_is_one_reason_and_leaves_books_open() -> None:
    """What open requests have reserved and pinned is no fault; what did not add up before it is."""
    metrics = replace(good_metrics(), interrupted=3)
    books = replace(BALANCED, ledger_ns=5, pinned_blocks=3, blocks_held=6)
    said = judge(metrics, books, ("4 of 14 planned requests never arrived",), is_interrupted=True)
    assert said.reasons == ("interrupted with 3 requests open", "4 of 14 planned requests never arrived")
    broken = judge(metrics, replace(books, problems=("rank 2 is lost",)), is_interrupted=True)
    assert broken.reasons == ("interrupted with 3 requests open", "rank 2 is lost")


def test_an_interruption_without_open_requests_is_still_one() -> None:
    """A run that was stopped is INVALID even where every request that came had ended."""
    verdict = judge(good_metrics(), BALANCED, is_interrupted=True)
    assert verdict.verdict == "INVALID" and verdict.reasons == ("interrupted with 0 requests open",)


def test_missing_books_and_problems_are_invalid() -> None:
    """A killed run closed no books; what the folds found counts too."""
    verdict = judge(good_metrics(), None, ("request 3 was ended after its end",))
    assert verdict.verdict == "INVALID"
    assert len(verdict.reasons) == 2
