"""A worker's load: totals since the start, sampled at even distances."""

from itertools import pairwise

import pytest

from tests.support.builders import a_request
from tests.support.recorded import MERGED, WORKERS, a_header, a_life, a_merge, told_in_order
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.codec import FACT, INPUT, ORDER, Record
from vertumnus.domain.facts import RankLost, RequestEnded, RequestsReturned, StepFailed
from vertumnus.domain.orders import Prefill
from vertumnus.domain.units import SECOND
from vertumnus.records.clock import Clock
from vertumnus.records.folds import RunFolds
from vertumnus.records.load import WorkerLoad, WorkerSample

WORKER = WORKERS[1]


def samples_of(told: list[Record]) -> list[WorkerSample]:
    """Return the samples of `WORKER`."""
    folds = RunFolds(a_header())
    folds.apply(told)
    folds.finish()
    assert [s.worker for s in folds.samples[:3]] == sorted(WORKERS)
    return [sample for sample in folds.samples if sample.worker == WORKER]


def test_two_requests_in_turn_by_hand() -> None:
    """Queue, busy time and totals at each second of two prefills, the second waiting for the first."""
    lives = [
        a_life(a_request(0), WORKER, 16, queue_ns=SECOND // 2, prefill_ns=SECOND, decode_ns=SECOND),
        a_life(a_request(1), WORKER, 0, queue_ns=3 * SECOND // 2, prefill_ns=SECOND, decode_ns=SECOND),
    ]
    samples = samples_of(told_in_order(lives))
    half = SECOND // 2
    assert [s.t_ns for s in samples] == [SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND]
    assert [s.queued_requests for s in samples] == [1, 0, 0, 0]
    assert [s.queued_ns for s in samples] == [SECOND, 0, 0, 0]
    assert [s.running_requests for s in samples] == [1, 1, 0, 0]
    assert [s.busy_ns for s in samples] == [half, 3 * half, 4 * half, 4 * half]
    assert [s.requests for s in samples] == [0, 1, 2, 2]
    assert [s.input_tokens for s in samples] == [0, 40, 80, 80]
    assert [s.cached_tokens for s in samples] == [0, 16, 16, 16]
    assert [s.queue_peak for s in samples] == [2, 2, 2, 2]


def test_requests_that_leave_the_queue_otherwise_do_not_stay_in_it() -> None:
    """Returned and cancelled requests leave the queue once, with their predicted time."""
    told = [a_life(a_request(n), WORKER)[0] for n in range(2)]
    told += [Record(ORDER, Prefill(n, 0, WORKER, 0, (), 7, 0)) for n in range(2)]
    told += [
        Record(FACT, RequestsReturned(SECOND, WORKER, (0,), "drained")),
        Record(FACT, RequestEnded(SECOND, 0, "failed", 0)),
        Record(FACT, RequestEnded(2 * SECOND + 1, 1, "cancelled", 0)),
    ]
    samples = samples_of(told)
    assert [(s.queued_requests, s.queued_ns) for s in samples] == [(2, 14), (1, 7), (0, 0)]


def test_workers_come_and_go() -> None:
    """A merged worker takes its halves' place when its epoch is sent; theirs are last samples then."""
    folds = RunFolds(a_header())
    folds.apply(a_merge(SECOND // 2))
    folds.finish()
    rest, (left, right) = WORKERS[0], MERGED.halves
    seen = [(s.t_ns * 2 // SECOND, s.worker, s.service, s.epoch) for s in folds.samples if s.worker != rest]
    assert seen == [
        *((half, worker, "draining", 0) for half in (2, 4, 6, 8) for worker in (left, right)),
        (9, left, "ended", 0),
        (9, right, "ended", 0),
        (10, MERGED, "forming", 1),
        (11, MERGED, "serving", 1),
    ]
    assert folds.samples[-1].since_ns == 9 * SECOND // 2


def test_a_lost_worker_is_out_of_service_and_stays_so() -> None:
    """Its ranks still count as the pool's, but not as workers in service, whatever is ordered later."""
    merge = a_merge(SECOND)
    lost = Record(INPUT, RankLost(5 * SECOND + 1, 2, 0, "killed"))
    folds = RunFolds(a_header())
    folds.apply([*merge[:-5], lost, merge[-1]])
    folds.finish()
    assert [(s.worker, s.service) for s in folds.samples[-2:]] == [
        (WORKERS[0], "serving"),
        (MERGED, "out of service"),
    ]
    assert folds._load.composition().workers == (WORKERS[0],)


@pytest.mark.parametrize(("ends_worker", "service"), [(False, "serving"), (True, "out of service")])
def test_a_failed_step_may_end_its_worker(ends_worker: bool, service: str) -> None:
    """A worker whose step failed serves on, unless the fact says that it does not."""
    folds = RunFolds(a_header())
    folds.apply([Record(FACT, StepFailed(SECOND + 1, 1, WORKERS[0], "torn", ends_worker))])
    folds.finish()
    assert folds.samples[-3].worker == WORKERS[0] and folds.samples[-3].service == service


def test_a_long_run_is_sampled_ever_more_sparsely() -> None:
    """After each 5,000 instants the distance doubles, so a year of idle time is a few thousand samples."""
    clock = Clock()
    load = WorkerLoad([CpGroup(0, 1)], SECOND, clock)
    load.sample_until(365 * 24 * 3600 * SECOND)
    times = [sample.t_ns // SECOND for sample in load.samples]
    assert times[:5_000] == list(range(1, 5_001))
    steps = [later - earlier for earlier, later in pairwise(times)]
    assert steps[4_998:5_001] == [1, 2, 2] and steps[9_998:10_001] == [2, 4, 4]
    assert len(times) < 70_000
