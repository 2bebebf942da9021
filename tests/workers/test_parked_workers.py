"""A worker that was told drained: between that and its new epoch nothing begins on its ranks."""

from tests.support.builders import a_request
from tests.support.fleet_rig import LEFT, PAIR, RIGHT, FleetRig, kinds
from vertumnus.domain.jobs import CopyDone, CopyJob
from vertumnus.domain.orders import AdoptEpoch, Drain, Transfer

KEYS = (1, 2, 3, 4)


def a_rig() -> FleetRig:
    """A fleet whose left worker holds a prompt of four blocks."""
    rig = FleetRig()
    rig.place(a_request(0, input_tokens=70, block_keys=KEYS))
    rig.finish_step()
    rig.hand_off(0)
    return rig


def a_copy(transfer_id: int) -> Transfer:
    """The order to copy that prompt to the pair."""
    return Transfer(transfer_id, KEYS, 0, (2, 2, 2, 2), PAIR, "reconcile", 9)


def test_a_parked_worker_is_no_source() -> None:
    """A copy from a sibling that waits for the other one is refused, and the merge goes on."""
    rig = a_rig()
    assert kinds(rig.order(Drain(LEFT))) == ["WorkerDrained"]
    assert kinds(rig.order(a_copy(1))) == ["TransferFailed"]
    assert kinds(rig.order(Drain(RIGHT))) == ["WorkerDrained"]
    rig.order(AdoptEpoch((LEFT.parent,), 1))
    assert LEFT.parent in rig.fleet.workers


def test_a_drain_waits_for_a_copy_that_began_before() -> None:
    """The source of a copy under way is told drained when the copy has ended."""
    rig = a_rig()
    assert kinds(rig.order(a_copy(1))) == ["TransferStarted"]
    assert kinds(rig.order(Drain(LEFT))) == []
    (job,) = rig.told(CopyJob)
    assert kinds(rig.conclude(CopyDone(rig.now, job.job_id, 64, 9))) == ["TransferFinished", "WorkerDrained"]
