"""Who may serve a request, and why the others may not (sec. 5.2, case 13)."""

from vertumnus.domain.cluster import CpGroup
from vertumnus.policy.candidates import Excluded, WorkerState, eligible


def test_service_and_size_decide() -> None:
    """In service and large enough is a candidate; each other one has its reason; order is kept."""
    ready = WorkerState(0, CpGroup(0, 2), 20)
    lost = WorkerState(1, CpGroup(2, 2), 20, "rank 2 is lost: killed")
    small = WorkerState(2, CpGroup(4, 1), 9)
    exact = WorkerState(3, CpGroup(5, 1), 10)
    candidates, excluded = eligible([ready, lost, small, exact], 10)
    assert candidates == [ready, exact]
    assert excluded == (
        Excluded(CpGroup(2, 2), "rank 2 is lost: killed"),
        Excluded(CpGroup(4, 1), "holds 9 blocks, the prompt needs 10"),
    )


def test_a_lost_worker_is_out_whatever_its_size() -> None:
    """The reason of a worker that is out of service and too small is that it is out of service."""
    _, excluded = eligible([WorkerState(0, CpGroup(0, 1), 1, "a step failed: torn")], 2)
    assert excluded == (Excluded(CpGroup(0, 1), "a step failed: torn"),)


def test_no_workers_no_candidates() -> None:
    """An empty pool has neither."""
    assert eligible([], 1) == ([], ())
