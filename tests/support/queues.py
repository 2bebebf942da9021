"""The fleet's queues against the ledger's mirror of them."""

from vertumnus.policy.control_plane import ControlPlane
from vertumnus.workers.fleet import Fleet


def assert_queues_mirrored(fleet: Fleet, control: ControlPlane) -> None:
    """Every worker's queue is in the ledger, in the order in which it would run."""
    told = {group: control.ledger.queued(group) for group in control.pool.groups}
    kept = {group: worker.queued_ids() for group, worker in fleet.workers.items()}
    forming = told.keys() ^ kept.keys()  # the fleet adopts an epoch before the books take it
    assert {g: ids for g, ids in told.items() if g not in forming} == {
        g: ids for g, ids in kept.items() if g not in forming
    }
    assert not any(kept.get(group) or told.get(group) for group in forming)
