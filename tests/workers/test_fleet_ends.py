"""Cancelled, failed, lost and stale at every stage: every request ends once and leaves nothing (D6-D8)."""

import pytest

from tests.support.builders import a_cluster, a_request
from tests.support.fleet_rig import LEFT, PAIR, RIGHT, FleetRig, assert_settled, kinds, the_end
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.facts import (
    HandoffFailed,
    HandoffFinished,
    RequestEnded,
    RequestsReturned,
    StepItem,
    StepStarted,
    WorkerStalled,
)
from vertumnus.domain.jobs import (
    DecodeDone,
    FirstToken,
    HandoffDone,
    HandoffJob,
    JobError,
    StepDone,
    StepJob,
    StopJob,
)
from vertumnus.domain.orders import Drain
from vertumnus.workers.config import DecodeConfig

KEYS = (1, 2, 3, 4)
TINY_POOL = DecodeConfig(ranks=1, slots_per_rank=1, tokens_per_rank=1_000)


# ---- cancel, at every stage -------------------------------------------------------------------------


def test_cancel_in_the_queue() -> None:
    """A queued request ends at once and nothing of it ever runs."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.place(a_request(1))
    assert rig.cancel(1) == [RequestEnded(4, 1, "cancelled", 0)]
    rig.finish_step()
    rig.hand_off(0)
    assert rig.told(StepJob)[1:] == []
    assert_settled(rig)


def test_cancel_in_the_queue_leaves_no_trace() -> None:
    """A number that comes again after its cancellation is placed like a new one."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.place(a_request(1))
    rig.cancel(1)
    rig.place(a_request(1), RIGHT)
    assert rig.step_of(RIGHT).works[0].request_id == 1


def test_cancel_while_it_runs_takes_effect_at_the_end_of_the_step() -> None:
    """The step's work is kept in the cache, no hand-off follows, and the end is told once."""
    rig = FleetRig()
    rig.place(a_request(0))
    assert rig.cancel(0) == []
    assert rig.cancel(0) == []
    assert kinds(rig.finish_step()) == ["StepFinished", "RequestEnded"]
    assert the_end(rig).status == "cancelled"
    assert rig.told(HandoffJob) == []
    assert rig.worker().cache.resident == 2
    assert_settled(rig)


def test_cancel_in_the_line_for_decoding() -> None:
    """A request that waits for a decode slot ends at once and gives its blocks back."""
    rig = FleetRig(a_cluster(decode=TINY_POOL))
    rig.place(a_request(0))
    rig.place(a_request(1))
    rig.finish_step()
    rig.finish_step()
    assert kinds(rig.cancel(1)) == ["RequestEnded"]
    assert rig.worker().handoff_blocks == 3
    rig.hand_off(0)
    assert len(rig.told(HandoffJob)) == 1
    assert_settled(rig)


@pytest.mark.parametrize("stages", [(), ("copy_done",), ("copy_done", "first_token")])
def test_cancel_during_the_hand_off_stops_the_job(stages: tuple[str, ...]) -> None:
    """From copy to decoding: one StopJob, and the end comes with the engine's answer."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.finish_step()
    for stage in stages:
        getattr(rig, stage)(0)
    assert rig.cancel(0) == []
    assert rig.cancel(0) == []
    assert rig.told(StopJob) == [StopJob(rig.handoff_of(0).job_id, 0)]
    rig.decoded(0, tokens=1)
    assert (the_end(rig).status, the_end(rig).output_tokens) == ("cancelled", 1)
    assert_settled(rig)


def test_cancel_when_it_has_ended_changes_nothing() -> None:
    """A wish that comes too late is no error."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.finish_step()
    rig.hand_off(0)
    assert rig.cancel(0) == []


def test_a_stopped_job_that_breaks_is_still_a_cancelled_request() -> None:
    """An error in answer to a StopJob ends the request; it is not placed again."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.finish_step()
    rig.cancel(0)
    assert kinds(rig.break_job(rig.handoff_of(0).job_id)) == ["HandoffFailed", "RequestEnded"]
    assert the_end(rig).status == "cancelled"
    assert_settled(rig)


# ---- failures and losses ----------------------------------------------------------------------------


def test_a_failed_step_returns_its_requests_and_the_next_one_begins() -> None:
    """What ran comes back, what is queued runs; what was reserved is free again."""
    rig = FleetRig()
    for number in range(2):
        rig.place(a_request(number))
    facts = rig.break_job(rig.step_of().job_id)
    assert kinds(facts) == ["StepFailed", "RequestsReturned", "StepStarted"]
    assert (facts[0].ends_worker, facts[1].request_ids) == (False, (0,))
    assert facts[2].items == (StepItem(1, 0, 0),)
    rig.finish_step()
    rig.hand_off(1)
    rig.place(a_request(0), attempt=1)
    rig.finish_step()
    rig.hand_off(0)
    assert_settled(rig)


def test_three_failed_steps_in_a_row_take_their_worker_out() -> None:
    """Running and queued requests come back, in order; what was reserved is free again (sec. 6.2)."""
    rig = FleetRig()
    for number in range(5):
        rig.place(a_request(number))
    for _ in range(2):
        rig.break_job(rig.step_of().job_id)
    facts = rig.break_job(rig.step_of().job_id)
    assert kinds(facts) == ["StepFailed", "RequestsReturned"]
    assert (facts[0].ends_worker, facts[1].request_ids) == (True, (2, 3, 4))
    assert not rig.worker().in_service
    assert (rig.worker().cache.used, rig.worker().step, rig.fleet.is_busy) == (0, None, False)
    rig.place(a_request(0), RIGHT, attempt=1)
    assert rig.told(StepStarted)[-1].items == (StepItem(0, 1, 0),)


def test_a_step_that_goes_well_is_a_new_beginning() -> None:
    """Two failures, a success and two failures leave the worker in service."""
    rig = FleetRig()
    for number, is_well in enumerate((False, False, True, False, False)):
        rig.place(a_request(number))
        if is_well:
            rig.finish_step()
        else:
            rig.break_job(rig.step_of().job_id)
    assert rig.worker().in_service


def test_a_request_that_fails_everywhere_ends_no_worker() -> None:
    """Steps of retries do not count: it is the request that is at fault."""
    rig = FleetRig()
    for attempt in range(4):
        rig.place(a_request(0), attempt=attempt)
        rig.break_job(rig.step_of().job_id)
    assert rig.worker().in_service


def test_a_draining_worker_whose_step_fails_is_drained() -> None:
    """The failure is its boundary."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.order(Drain(LEFT))
    assert kinds(rig.break_job(rig.step_of().job_id)) == ["StepFailed", "RequestsReturned", "WorkerDrained"]


def test_a_lost_rank_takes_its_whole_worker() -> None:
    """Rank 1 is half of the degree-2 worker: its step fails and the worker serves no more."""
    rig = FleetRig()
    rig.place(a_request(0), PAIR)
    assert kinds(rig.lose_rank(1)) == ["StepFailed", "RequestsReturned"]
    assert rig.lose_rank(0) == []
    assert rig.place(a_request(0), PAIR, attempt=1) == [RequestsReturned(4, PAIR, (0,), "out of service")]


def test_a_cancelled_request_of_a_failed_step_ends() -> None:
    """Of a failed batch only the requests that are still wanted come back."""
    rig = FleetRig(a_cluster(step_tokens=100))
    rig.place(a_request(0))
    for number in (1, 2):
        rig.place(a_request(number))
    rig.finish_step()
    rig.cancel(1)
    facts = rig.break_job(rig.step_of().job_id)
    assert kinds(facts) == ["StepFailed", "RequestEnded", "RequestsReturned"]
    assert (the_end(rig, 1).status, facts[2].request_ids) == ("cancelled", (2,))


def test_a_lost_rank_returns_what_waits_for_decoding() -> None:
    """A prompt whose KV is gone before a decode rank took it needs a new prefill."""
    rig = FleetRig(a_cluster(decode=TINY_POOL))
    for number in range(2):
        rig.place(a_request(number))
        rig.finish_step()
    (returned,) = rig.lose_rank(LEFT.first_rank)
    assert returned.request_ids == (1,)
    rig.hand_off(0)
    assert the_end(rig).status == "finished"
    assert_settled(rig)


@pytest.mark.parametrize("stages", [(), ("copy_done",), ("copy_done", "first_token")])
def test_a_broken_hand_off_returns_the_request(stages: tuple[str, ...]) -> None:
    """At any stage of the hand-off: HandoffFailed, then the request comes back and nothing stays pinned."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.finish_step()
    for stage in stages:
        getattr(rig, stage)(0)
    assert kinds(rig.break_job(rig.handoff_of(0).job_id)) == ["HandoffFailed", "RequestsReturned"]
    assert_settled(rig)
    rig.place(a_request(0), RIGHT, attempt=1)
    rig.finish_step(RIGHT)
    rig.hand_off(0)
    assert the_end(rig).status == "finished"


def test_a_lost_decode_rank_returns_its_sequences_only() -> None:
    """Sequences on the other decode rank go on; later ones go to it."""
    rig = FleetRig(a_cluster(decode=DecodeConfig(ranks=2, slots_per_rank=4, tokens_per_rank=1_000)))
    for number in range(2):
        rig.place(a_request(number))
        rig.finish_step()
    assert [job.decode_rank for job in rig.told(HandoffJob)] == [0, 1]
    facts = rig.lose_decode_rank(0)
    assert kinds(facts) == ["HandoffFailed", "RequestsReturned"]
    assert (facts[0].request_id, facts[0].decode_rank) == (0, 0)
    rig.place(a_request(0), RIGHT, attempt=1)
    rig.finish_step(RIGHT)
    assert rig.handoff_of(0).decode_rank == 1
    rig.hand_off(0)
    rig.hand_off(1)
    assert_settled(rig)


def test_without_decode_ranks_requests_come_back() -> None:
    """With the last decode rank, decoding, waiting, queued, running and later requests return for good."""
    rig = FleetRig(a_cluster(decode=TINY_POOL))
    for number in range(4):
        rig.place(a_request(number), (LEFT, RIGHT, PAIR, PAIR)[number])
    rig.finish_step(LEFT)
    rig.finish_step(RIGHT)
    facts = rig.lose_decode_rank(0)
    assert kinds(facts) == ["HandoffFailed", *["RequestsReturned"] * 3]
    assert kinds(rig.finish_step(PAIR)) == ["StepFinished", "RequestsReturned"]
    assert kinds(rig.place(a_request(4))) == ["RequestsReturned"]
    returned = rig.told(RequestsReturned)
    assert [each.request_ids for each in returned] == [(0,), (1,), (3,), (2,), (4,)]
    assert all(each.is_final for each in returned)
    assert_settled(rig)


def test_losing_a_decode_rank_resumes_the_workers_that_it_stalled() -> None:
    """Blocks that hand-offs kept are free at once, so a stalled worker goes on."""
    rig = FleetRig(
        a_cluster(blocks_per_rank=16, decode=DecodeConfig(ranks=2, slots_per_rank=1, tokens_per_rank=99))
    )
    for number in range(3):
        rig.place(a_request(number, input_tokens=40))
    rig.finish_step()
    rig.finish_step()
    assert rig.told(WorkerStalled)
    facts = rig.lose_decode_rank(0)
    assert kinds(facts) == ["HandoffFailed", "RequestsReturned", "WorkerResumed", "StepStarted"]


def test_a_rejected_request_ends_with_its_reason() -> None:
    """A Reject is the end that it says."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.break_job(rig.step_of().job_id)
    assert rig.reject(0) == [RequestEnded(3, 0, "rejected", 0, "no room")]
    assert rig.fleet.open_requests == 0


# ---- stale and wrong --------------------------------------------------------------------------------


def test_stale_outcomes_change_nothing() -> None:
    """An outcome of a job that has ended, failed or never was says nothing and moves nothing (D6)."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.place(a_request(1))
    step = rig.step_of().job_id
    rig.finish_step()
    handoff = rig.handoff_of(0).job_id
    assert rig.conclude(StepDone(9, step, 7)) == []
    assert rig.conclude(JobError(9, step, "late")) == []
    rig.copy_done(0)
    assert rig.copy_done(0) == []
    rig.decoded(0)
    late = (
        HandoffDone(9, handoff),
        FirstToken(9, handoff),
        DecodeDone(9, handoff, 4),
        JobError(9, handoff, "late"),
        StepDone(9, 99, 7),
    )
    assert [rig.conclude(outcome) for outcome in late] == [[]] * 5
    assert rig.worker().in_service


def test_the_outcome_of_an_earlier_attempt_is_stale() -> None:
    """A hand-off that broke cannot finish the second attempt of its request."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.finish_step()
    first = rig.handoff_of(0).job_id
    rig.break_job(first)
    rig.place(a_request(0), RIGHT, attempt=1)
    assert rig.conclude(DecodeDone(9, first, 4)) == []
    rig.finish_step(RIGHT)
    assert rig.conclude(HandoffDone(9, first)) == []
    assert rig.copy_done(0) == [HandoffFinished(rig.now - 1, 0, 1, 0)]
    assert [fact.attempt for fact in rig.told(HandoffFailed)] == [0]


def test_a_request_is_at_one_worker_only() -> None:
    """A second placement of a request that is queued or running is refused."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.place(a_request(1))
    for number in (0, 1):
        with pytest.raises(ProtocolError, match=f"request {number} is already at a worker"):
            rig.place(a_request(number), RIGHT, attempt=1)


def test_books_count_what_is_open() -> None:
    """In the middle of a run the books show the request, its pins, its slots and its sequence."""
    rig = FleetRig()
    rig.place(a_request(0, input_tokens=40))
    rig.finish_step()
    assert rig.fleet.books() == (1, 2, 3, 2, 1)
    assert rig.fleet.is_busy


def test_every_worker_of_the_composition_is_there() -> None:
    """The fleet starts with the configured workers, all of them in service."""
    fleet = FleetRig().fleet
    assert list(fleet.workers) == [CpGroup(0, 2), CpGroup(2, 1), CpGroup(3, 1)]
    assert all(worker.in_service for worker in fleet.workers.values())
