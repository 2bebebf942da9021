"""Facts fold to one record per request, and TTFT = queue + cache wait + prefill + ext in each."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import BLOCK_TOKENS, a_request
from tests.support.recorded import MERGED, WORKERS, a_header, a_life, told_in_order, without_keys
from vertumnus.domain.codec import FACT, INPUT, ORDER, Record
from vertumnus.domain.facts import (
    FirstTokenEmitted,
    HandoffFailed,
    OperatorActed,
    RankLost,
    RequestArrived,
    RequestCancelled,
    RequestEnded,
    RequestsReturned,
    StepFailed,
    StepFinished,
    StepItem,
    StepStarted,
    TimerFired,
    TransferFailed,
    TransferFinished,
    TransferStarted,
)
from vertumnus.domain.orders import Answer, CloseTransition, Prefill, Reject
from vertumnus.domain.request import Request
from vertumnus.records.folds import RunFolds
from vertumnus.records.request_record import RequestRecord


def fold(records: Sequence[Record], backend: str = "sim") -> RunFolds:
    """Return the folds of a whole run."""
    folds = RunFolds(a_header(backend))
    folds.apply(records)
    folds.finish()
    return folds


def the_record(records: Sequence[Record], backend: str = "sim") -> RequestRecord:
    """Return the record of the only request."""
    folds = fold(records, backend)
    assert not folds.problems
    (record,) = folds.requests
    return record


def test_one_life_by_hand() -> None:
    """Every column of a plain request, worked out by hand."""
    request = Request(0, 100, 40, 4, (7, 8), ttft_target_ns=60, tpot_target_ns=9)
    life = a_life(request, WORKERS[0], 16, queue_ns=10, prefill_ns=20, ext_ns=30, decode_ns=28)
    record = the_record(life)
    assert (record.queue_ns, record.cache_wait_ns, record.prefill_ns, record.ext_ns) == (10, 0, 20, 30)
    assert (record.ttft_ns, record.slo_met) == (60, True)
    assert (record.tpot_ns, record.tpot_met) == (28 // 3, True)
    assert (record.t_ns, record.e2e_ns, record.compute_ns) == (188, 88, 19)
    assert (record.input_tokens, record.cached_tokens, record.uncached_tokens) == (40, 16, 24)
    assert (record.worker, record.epoch, record.step_id, record.attempts) == (WORKERS[0], 0, 0, 1)
    assert record.gpu_ns == 2 * 20
    assert (record.expected_cached_tokens, record.predicted_service_ns) == (16, 20)
    assert (record.oracle_cached_tokens, record.send_lag_ns, record.status) == (0, None, "finished")


def test_a_late_sender_makes_the_queue_longer_not_the_ttft_shorter() -> None:
    """In a live run TTFT counts from the planned arrival, and the lag is stored beside it."""
    record = the_record(a_life(a_request(arrival_ns=100), sent_late_ns=5, queue_ns=10), "live")
    assert (record.send_lag_ns, record.queue_ns) == (5, 15)


def test_who_cancelled_is_said_and_when() -> None:
    """The first cancellation counts, from the planned arrival on; the request is missed all the same."""
    request = Request(0, 100, 40, 4, (7, 8), ttft_target_ns=10**12)
    life = [record for record in a_life(request, sent_late_ns=5) if record.source != FACT]
    gone = [
        Record(INPUT, RequestCancelled(100 + 1_500_000_000, 0, "client")),
        Record(INPUT, RequestCancelled(100 + 1_600_000_000, 0, "operator")),
        Record(FACT, RequestEnded(100 + 1_700_000_000, 0, "cancelled", 0)),
    ]
    record = the_record([*life, *gone])
    assert (record.status, record.reason) == ("cancelled", "by client, 1.500 s after its arrival")
    assert (record.e2e_ns, record.ttft_ns, record.slo_met) == (1_700_000_000, None, False)


def test_one_output_token_has_no_tpot_but_a_ttft() -> None:
    """With one output token TPOT is undefined, not 0, and neither met nor missed."""
    request = Request(0, 0, 40, 1, None, tpot_target_ns=1)
    record = the_record(a_life(request))
    assert (record.tpot_ns, record.tpot_met) == (None, None)
    assert record.ttft_ns is not None


def test_unknown_content_has_no_oracle() -> None:
    """Without block keys nobody can say what an unlimited cache would have held."""
    assert the_record(a_life(without_keys(a_request()))).oracle_cached_tokens is None


def test_the_oracle_counts_whole_blocks_in_order_of_arrival() -> None:
    """The second request finds the shared blocks, but computes at least one token."""
    keys = (1, 2)
    lives = [a_life(Request(n, n, 2 * BLOCK_TOKENS, 2, keys)) for n in range(2)]
    first, second = fold(told_in_order(lives)).requests
    assert (first.oracle_cached_tokens, second.oracle_cached_tokens) == (0, BLOCK_TOKENS)


def a_retry(request: Request, at: int) -> list[Record]:
    """Return a life whose first step fails, whose second breaks in decoding, and whose third works."""
    number, (first, second, third) = request.request_id, WORKERS
    steps = [10 * number + 1_000 + attempt for attempt in range(3)]
    return [
        Record(INPUT, RequestArrived(at, request)),
        Record(ORDER, Prefill(number, 0, first, 0, (), 9, 32)),
        Record(FACT, StepStarted(at + 1, steps[0], first, 0, (StepItem(number, 0, 32),), ())),
        Record(FACT, StepFailed(at + 2, steps[0], first, "rank 1 lost", False)),
        Record(FACT, RequestsReturned(at + 2, first, (number,), "rank 1 lost")),
        Record(ORDER, Prefill(number, 1, second, 0, (), 9, 16)),
        Record(FACT, StepStarted(at + 3, steps[1], second, 0, (StepItem(number, 1, 16),), ())),
        Record(FACT, StepFinished(at + 4, steps[1], second, 1, ())),
        Record(FACT, FirstTokenEmitted(at + 5, number, 1)),
        Record(FACT, HandoffFailed(at + 6, number, 1, 0, "decode rank lost")),
        Record(FACT, RequestsReturned(at + 6, second, (number,), "decode rank lost")),
        Record(ORDER, Prefill(number, 2, third, 0, (), 9, 0)),
        Record(FACT, StepStarted(at + 10, steps[2], third, 0, (StepItem(number, 2, 0),), ())),
        Record(FACT, StepFinished(at + 30, steps[2], third, 19, ())),
        Record(FACT, FirstTokenEmitted(at + 35, number, 2)),
        Record(FACT, RequestEnded(at + 40, number, "finished", request.output_tokens)),
    ]


def test_of_several_attempts_the_last_counts_and_the_rest_is_queue() -> None:
    """A hit is counted once, at the step that served the request in the end."""
    record = the_record(a_retry(a_request(), 0))
    assert (record.attempts, record.placements, record.worker, record.cached_tokens) == (3, 3, WORKERS[2], 0)
    assert (record.queue_ns, record.prefill_ns, record.ext_ns, record.ttft_ns) == (10, 20, 5, 35)


COPY_ENDS = 30


def a_wait_for_a_copy(*before: Record, started_ns: int = COPY_ENDS, failed: bool = False) -> list[Record]:
    """A request that arrives at 0 and starts when its copy has ended, which takes from 5 to 30."""
    worker, request = WORKERS[1], a_request()
    ended = (
        TransferFailed(COPY_ENDS, 1, worker, "torn")
        if failed
        else TransferFinished(COPY_ENDS, 1, worker, 0, (2,), 64, 9)
    )
    copy = [Record(FACT, TransferStarted(5, 1, worker, ())), Record(FACT, ended)]
    placed = Record(ORDER, Prefill(0, 0, worker, 0, (), 9, 16, after_transfer=1))
    served = [
        Record(FACT, StepStarted(started_ns, 8, worker, 0, (StepItem(0, 0, 16),), ())),
        Record(FACT, StepFinished(started_ns + 20, 8, worker, 19, ())),
        Record(FACT, FirstTokenEmitted(started_ns + 25, 0, 0)),
        Record(FACT, RequestEnded(started_ns + 40, 0, "finished", request.output_tokens)),
    ]
    told = told_in_order([[Record(INPUT, RequestArrived(0, request))], copy, before, served])
    return [told[0], placed, *told[1:]]


def another_step(started_ns: int, finished_ns: int) -> list[Record]:
    """A step of somebody else on the same worker."""
    return [
        Record(FACT, StepStarted(started_ns, 7, WORKERS[1], 0, (), ())),
        Record(FACT, StepFinished(finished_ns, 7, WORKERS[1], 1, ())),
    ]


@pytest.mark.parametrize(
    ("told", "cache_wait"),
    [
        pytest.param(a_wait_for_a_copy(), 25, id="idle all the while: from the copy's start"),
        pytest.param(a_wait_for_a_copy(failed=True), 25, id="a copy that failed made it wait as long"),
        pytest.param(a_wait_for_a_copy(*another_step(1, 12)), 18, id="from the end of the step before"),
        pytest.param(a_wait_for_a_copy(*another_step(1, COPY_ENDS)), 0, id="busy all the while"),
        pytest.param(a_wait_for_a_copy(started_ns=31), 0, id="something else let it start"),
    ],
)
def test_what_a_copy_held_up_is_cache_wait(told: list[Record], cache_wait: int) -> None:
    """Not queue: and the parts still add up to the TTFT."""
    record = the_record(told)
    assert record.cache_wait_ns == cache_wait
    assert record.queue_ns is not None and record.ttft_ns is not None
    assert record.queue_ns + cache_wait + 20 + 5 == record.ttft_ns


def test_a_copy_that_never_started_held_nothing_up() -> None:
    """Refused at once, it leaves the wait where it was: in the queue."""
    told = [r for r in a_wait_for_a_copy(failed=True) if not isinstance(r.body, TransferStarted)]
    assert the_record(told).cache_wait_ns == 0


def test_a_redirect_is_no_attempt_and_waits_for_its_new_copy_only() -> None:
    """It keeps its arrival; the copy that it joins counts from its return on."""
    draining = WORKERS[0]
    returned = RequestsReturned(20, draining, (0,), "draining", is_failure=False)
    first, *rest = a_wait_for_a_copy()
    again = rest.pop(0)
    rest.insert(1, Record(FACT, returned))
    rest.insert(2, again)
    record = the_record([first, Record(ORDER, Prefill(0, 0, draining, 0, (), 9, 16)), *rest])
    assert (record.attempts, record.placements, record.worker) == (1, 2, WORKERS[1])
    assert (record.queue_ns, record.cache_wait_ns, record.ttft_ns) == (20, 10, 55)


def test_requests_of_one_step_share_its_gpu_time() -> None:
    """The GPU time of a step is counted once over its requests, by their uncached tokens."""
    worker = WORKERS[0]
    items = (StepItem(0, 0, 0), StepItem(1, 0, 16))
    told = [Record(INPUT, RequestArrived(0, a_request(n, input_tokens=32))) for n in range(2)]
    told += [Record(ORDER, Prefill(n, 0, worker, 0, (), 9, 0)) for n in range(2)]
    told += [
        Record(FACT, StepStarted(0, 5, worker, 0, items, ())),
        Record(FACT, StepFinished(300, 5, worker, 300, ())),
    ]
    assert [record.gpu_ns for record in fold(told).requests] == [400, 200]


def a_rejection(request: Request, at: int) -> list[Record]:
    """Return the life of a request that is turned away."""
    return [
        Record(INPUT, RequestArrived(at, request)),
        Record(ORDER, Reject(request.request_id, "rejected", "too long")),
        Record(FACT, RequestEnded(at, request.request_id, "rejected", 0, "too long")),
    ]


def test_what_did_not_happen_is_none() -> None:
    """A rejected request has no queue, no hit and no TTFT; its target is missed."""
    record = the_record(a_rejection(Request(0, 0, 40, 4, (1, 2), ttft_target_ns=9), 0))
    undefined = (record.queue_ns, record.cached_tokens, record.ttft_ns, record.worker, record.gpu_ns)
    assert undefined == (None,) * 5
    assert (record.status, record.reason, record.slo_met, record.tpot_met) == (
        "rejected",
        "too long",
        False,
        None,
    )


@pytest.mark.parametrize("kept", range(1, 7))
def test_a_run_cut_short_leaves_its_requests_interrupted(kept: int) -> None:
    """Whatever a request had reached when the run ended is in its record."""
    life = a_life(a_request(), queue_ns=10, prefill_ns=20, ext_ns=30)
    record = the_record(life[:kept])
    assert (record.status, record.e2e_ns, record.output_tokens) == ("interrupted", None, None)
    assert record.queue_ns == (10 if kept >= 3 else None)
    assert record.prefill_ns == (20 if kept >= 4 else None)
    assert record.ttft_ns == (60 if kept >= 6 else None)


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Return the records of some requests that finish, are rejected, or need three attempts."""
    lives, at = [], 0
    for number in range(draw(st.integers(1, 12))):
        at += draw(st.integers(0, 50))
        blocks = draw(st.integers(0, 6))
        keys = tuple(100 * draw(st.integers(0, 2)) + depth for depth in range(blocks))
        known = draw(st.booleans())
        request = Request(
            number, at, 1 + blocks * BLOCK_TOKENS, draw(st.integers(1, 3)), keys if known else None, 60
        )
        kind = draw(st.sampled_from(["finish", "retry", "reject"]))
        if kind == "finish":
            times = [draw(st.integers(0, 40)) for _ in range(5)]
            cached = draw(st.integers(0, blocks)) * BLOCK_TOKENS
            lives.append(a_life(request, WORKERS[number % 3], cached, *times))
        elif kind == "retry":
            lives.append(a_retry(Request(number, at, 1 + 6 * BLOCK_TOKENS, 2, keys), at))
        else:
            lives.append(a_rejection(request, at))
    return told_in_order(lives)


@settings(deadline=None)
@given(told=histories(), share=st.floats(0, 1))
def test_the_identity_holds_and_every_request_has_one_record(told: list[Record], share: float) -> None:
    """However the run goes and wherever it stops: parts add up, one record each, hits below input."""
    told = told[: int(share * len(told))]
    folds = fold(told)
    arrived = [r.body.request.request_id for r in told if isinstance(r.body, RequestArrived)]
    ended = {r.body.request_id: r.body.status for r in told if isinstance(r.body, RequestEnded)}
    assert [record.request_id for record in folds.requests] == sorted(arrived)
    assert not folds.problems
    for record in folds.requests:
        assert record.status == ended.get(record.request_id, "interrupted")
        parts = (record.queue_ns, record.cache_wait_ns, record.prefill_ns, record.ext_ns)
        assert (record.ttft_ns is None) == (None in parts)
        if record.ttft_ns is not None:
            assert sum(part for part in parts if part is not None) == record.ttft_ns
        if record.cached_tokens is not None:
            assert 0 <= record.cached_tokens < record.input_tokens
        if record.oracle_cached_tokens is not None:
            assert 0 <= record.oracle_cached_tokens < record.input_tokens


def test_impossible_facts_are_told() -> None:
    """A second end, a finish without a token, a step without work, time running back: each is said."""
    request = a_request(input_tokens=32)
    life = a_life(request)
    assert "request 0 was ended after its end" in fold([*life, life[-1]]).problems[0]
    assert "request 0 was ended after its end" in fold([life[-1]]).problems[0]
    assert fold([life[0], life[-1]]).problems == ("request 0 finished without a first token",)
    assert "nothing to compute" in fold(a_life(request, cached_tokens=32)).problems[0]
    assert "the clock went backwards from" in fold([life[-2], life[0]]).problems[0]


def test_faults_are_listed_with_whom_they_befell() -> None:
    """Failures come out in order, each with its kind, subject and reason."""
    lost = Record(INPUT, RankLost(5, 3, 0, "killed"))
    faults = fold([lost, *a_retry(a_request(), 6)]).faults
    assert [(f.t_ns, f.kind, f.subject, f.reason) for f in faults] == [
        (5, "rank_lost", "rank 3", "killed"),
        (8, "step_failed", "worker 0x2", "rank 1 lost"),
        (12, "handoff_failed", "request 0", "decode rank lost"),
    ]


def test_a_worker_that_fails_by_itself_is_a_loss() -> None:
    """Failed steps are told; the one that ends its worker, without a lost rank, is a lost worker."""
    pair = WORKERS[0]
    faults = fold(
        [
            Record(FACT, StepFailed(3, 1, pair, "torn", False)),
            Record(FACT, StepFailed(4, 2, pair, "3 steps in a row failed", True)),
        ]
    ).faults
    assert [(f.kind, f.subject) for f in faults] == [
        ("step_failed", "worker 0x2"),
        ("worker_lost", "worker 0x2"),
    ]


def test_faults_of_a_pool_that_changes() -> None:
    """Transitions that did not commit, copies that failed and wishes that were refused, at their times."""
    merged, (left, right) = MERGED, MERGED.halves
    faults = fold(
        [
            Record(INPUT, OperatorActed(3, 7, "ann", "split", (left,))),
            Record(ORDER, Answer(7, False, "degree 1")),
            Record(INPUT, OperatorActed(4, 8, "ann", "merge", (left, right))),
            Record(ORDER, Answer(8, True, "")),
            Record(INPUT, RankLost(5, 3, 0, "killed")),
            Record(ORDER, CloseTransition(1, "merge", (left, right), (merged,), "reopened", "3x1 was lost")),
            Record(FACT, TransferFailed(6, 4, left, "torn")),
            Record(INPUT, TimerFired(9, "switch 2", 9)),
            Record(ORDER, CloseTransition(2, "split", (WORKERS[0],), WORKERS[0].halves, "failed", "late")),
            Record(ORDER, CloseTransition(3, "merge", (left, right), (merged,), "committed", "")),
        ]
    ).faults
    assert [(f.t_ns, f.kind, f.subject, f.reason) for f in faults] == [
        (3, "wish_refused", "split 2x1 by ann", "degree 1"),
        (5, "rank_lost", "rank 3", "killed"),
        (5, "transition_reopened", "merge 2x1 + 3x1 -> 2x2", "3x1 was lost"),
        (6, "transfer_failed", "transfer 4 to worker 2x1", "torn"),
        (9, "transition_failed", "split 0x2 -> 0x1 + 1x1", "late"),
    ]
