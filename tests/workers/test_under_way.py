"""Jobs under way: from the event that starts them to their last outcome."""

from tests.support.builders import a_request
from tests.support.fleet_rig import LEFT, FleetRig
from vertumnus.domain.jobs import HandoffJob, StepJob


def under_way(rig: FleetRig) -> list[tuple[type, int]]:
    """Return the kind and the start of each job that the fleet waits for."""
    return [(type(job), since) for job, since in rig.fleet.jobs]


def test_a_step_and_a_hand_off() -> None:
    """The step until it is done; the hand-off until the output is complete, through copy and first token."""
    rig = FleetRig()
    rig.place(a_request(0))
    ((kind, step_began),) = under_way(rig)
    assert kind is StepJob
    rig.finish_step(LEFT)
    ((kind, handoff_began),) = under_way(rig)
    assert kind is HandoffJob and handoff_began > step_began
    rig.copy_done(0)
    rig.first_token(0)
    assert under_way(rig) == [(HandoffJob, handoff_began)]
    rig.decoded(0)
    assert under_way(rig) == []


def test_the_wish_to_stop_a_hand_off_is_no_job() -> None:
    """A cancelled request's hand-off stays what it is until the engine says that it ended."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.finish_step(LEFT)
    before = under_way(rig)
    rig.cancel(0)
    assert under_way(rig) == before
    rig.decoded(0, 0)
    assert under_way(rig) == []


def test_a_job_that_broke_is_over() -> None:
    """Its error is its last outcome."""
    rig = FleetRig()
    rig.place(a_request(0))
    (job,) = (job for job, _ in rig.fleet.jobs)
    rig.break_job(job.job_id)
    assert job.job_id not in {job.job_id for job, _ in rig.fleet.jobs}
