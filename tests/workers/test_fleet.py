"""Orders become jobs and outcomes facts: one request's way, batches, hand-offs, decode places (D3-D8)."""

import pytest

from tests.support.builders import a_cluster, a_request
from tests.support.fleet_rig import LEFT, PAIR, RIGHT, FleetRig, assert_settled, kinds, the_end
from vertumnus.domain.facts import (
    Evicted,
    FirstTokenEmitted,
    HandoffFinished,
    Installed,
    RequestEnded,
    StepItem,
    StepStarted,
    WorkerStalled,
)
from vertumnus.domain.jobs import (
    HandoffJob,
)
from vertumnus.workers.config import DecodeConfig

KEYS = (1, 2, 3, 4)
TINY_POOL = DecodeConfig(ranks=1, slots_per_rank=1, tokens_per_rank=1_000)


# ---- one request's way ------------------------------------------------------------------------------


def test_a_request_walks_through_all_stations() -> None:
    """Queue, step, copy, first token, end: one fact each, with jobs that name its slots."""
    rig = FleetRig()
    request = a_request(0, input_tokens=40, block_keys=(1, 2))
    (started,) = rig.place(request, PAIR)
    assert started == StepStarted(1, 1, PAIR, 0, (StepItem(0, 0, 0),), ())
    slots = rig.step_of(PAIR).works[0].slots
    assert [slot // 64 for slot in slots] == [0, 1, 0]
    (finished,) = rig.finish_step(PAIR)
    assert (finished.compute_ns, finished.installed) == (7, (Installed(0, 0, None),))
    assert rig.told(HandoffJob) == [HandoffJob(2, 0, 0, PAIR, 0, 40, 4, slots)]
    assert rig.copy_done(0) == [HandoffFinished(3, 0, 0, 0)]
    assert rig.first_token(0) == [FirstTokenEmitted(4, 0, 0)]
    assert rig.decoded(0) == [RequestEnded(5, 0, "finished", 4)]
    assert rig.fleet.open_requests == 0
    assert_settled(rig)


def test_only_one_step_runs_at_a_worker() -> None:
    """The next request waits until the step is done, and starts then."""
    rig = FleetRig()
    rig.place(a_request(0))
    assert rig.place(a_request(1)) == []
    assert rig.worker().queued_ids() == [1]
    assert kinds(rig.finish_step()) == ["StepFinished", "StepStarted"]


def test_blocks_stay_pinned_until_the_copy_is_confirmed() -> None:
    """Whole blocks are pinned from the step's end to HandoffFinished, then they are only resident."""
    rig = FleetRig()
    rig.place(a_request(0, input_tokens=40))
    rig.finish_step()
    assert (rig.worker().cache.pinned, rig.worker().cache.used) == (2, 3)
    rig.copy_done(0)
    assert (rig.worker().cache.pinned, rig.worker().cache.used) == (0, 2)


def test_reuse_is_settled_when_the_step_starts() -> None:
    """A request queued behind one with its prefix reuses it, whatever its order expected (D5)."""
    rig = FleetRig()
    rig.place(a_request(0, input_tokens=40, block_keys=(1, 2)))
    rig.place(a_request(1, input_tokens=72, block_keys=(1, 2, 3, 4)))
    rig.finish_step()
    assert rig.told(StepStarted)[1].items == (StepItem(1, 0, 32),)
    work = rig.step_of().works[0]
    assert (work.cached_tokens, work.slots[:2]) == (32, rig.handoff_of(0).slots[:2])


def test_a_full_hit_computes_the_last_block_in_a_private_slot() -> None:
    """R >= 1: the last block of a fully cached prompt is computed beside the resident one (case 12)."""
    rig = FleetRig()
    rig.place(a_request(0, input_tokens=64, block_keys=KEYS))
    rig.finish_step()
    rig.hand_off(0)
    resident = rig.handoff_of(0).slots
    rig.place(a_request(1, input_tokens=64, block_keys=KEYS))
    work = rig.step_of().works[0]
    assert work.input_tokens - work.cached_tokens == 16
    assert work.slots[:3] == resident[:3]
    assert work.slots[3] not in resident
    rig.finish_step()
    assert rig.worker().cache.used == 5
    rig.hand_off(1)
    assert (rig.worker().cache.used, rig.worker().cache.resident) == (4, 4)
    assert_settled(rig)


@pytest.mark.parametrize(("tokens", "blocks"), [(1, 1), (16, 1), (40, 3)])
def test_unknown_content_is_never_installed(tokens: int, blocks: int) -> None:
    """A prompt without block keys takes its slots, installs nothing and leaves nothing behind (case 5)."""
    rig = FleetRig()
    request = a_request(0, input_tokens=tokens)
    rig.place(type(request)(0, 0, tokens, 4, None))
    assert rig.worker().cache.used == blocks
    (finished,) = rig.finish_step()
    assert finished.installed == ()
    rig.hand_off(0)
    assert rig.worker().cache.used == 0


def test_a_one_token_prompt_is_served() -> None:
    """L = 1 has no whole block: one private slot, R = 1."""
    rig = FleetRig()
    rig.place(a_request(0, input_tokens=1))
    work = rig.step_of().works[0]
    assert (work.input_tokens, work.cached_tokens, len(work.slots)) == (1, 0, 1)
    rig.finish_step()
    rig.hand_off(0)
    assert the_end(rig).status == "finished"


def test_what_made_room_is_told_with_the_step() -> None:
    """Four slots, two prompts of three blocks: the step's fact names the least recently used leaves."""
    rig = FleetRig(a_cluster(blocks_per_rank=4, handoff_share=1.0))
    rig.place(a_request(0, input_tokens=48, block_keys=(1, 2, 3)))
    rig.finish_step()
    rig.hand_off(0)
    (started,) = rig.place(a_request(1, input_tokens=48, block_keys=(7, 8, 9)))
    assert started.evicted == (Evicted(2, (3, 2)),)


def test_a_step_waits_for_room_that_hand_offs_hold() -> None:
    """With every block pinned by a hand-off the next request waits; the copy's end starts it."""
    rig = FleetRig(a_cluster(blocks_per_rank=4, handoff_share=1.0))
    rig.place(a_request(0, input_tokens=64))
    rig.place(a_request(1, input_tokens=64))
    assert kinds(rig.finish_step()) == ["StepFinished"]
    assert rig.worker().queued_ids() == [1]
    assert kinds(rig.copy_done(0)) == ["HandoffFinished", "StepStarted"]


# ---- batching and guards ----------------------------------------------------------------------------


def test_after_is_a_guard_within_a_worker() -> None:
    """A request runs after those that its order names, even when it is first in the queue (D3)."""
    rig = FleetRig()
    rig.place(a_request(0, arrival_ns=0))
    rig.place(a_request(2, arrival_ns=3))
    rig.place(a_request(1, arrival_ns=2), after=(2,))
    rig.finish_step()
    rig.finish_step()
    assert [item.request_id for fact in rig.told(StepStarted) for item in fact.items] == [0, 2, 1]


def test_a_guard_opens_when_its_request_is_cancelled() -> None:
    """`after` waits for an end in any way: cancelling the earlier request lets the later one start."""
    rig = FleetRig(a_cluster(blocks_per_rank=4, handoff_share=1.0))
    rig.place(a_request(0, input_tokens=64))
    rig.place(a_request(1, input_tokens=64))
    rig.place(a_request(2, input_tokens=16), after=(1,))
    rig.finish_step()
    rig.copy_done(0)
    rig.finish_step()
    rig.copy_done(1)
    assert rig.step_of().works[0].request_id == 2
    rig.place(a_request(3, input_tokens=64))
    rig.place(a_request(4, input_tokens=16), after=(3,))
    rig.finish_step()
    assert rig.worker().queued_ids() == [3, 4]
    assert kinds(rig.cancel(3)) == ["RequestEnded", "StepStarted"]


def test_a_batch_shares_a_step() -> None:
    """Two requests within step_tokens start, install and hand off together, each with its own items (D5)."""
    rig = FleetRig(a_cluster(step_tokens=80))
    rig.place(a_request(0, input_tokens=40))
    rig.place(a_request(1, input_tokens=40))
    rig.place(a_request(2, input_tokens=40))
    rig.finish_step()
    started = rig.told(StepStarted)[1]
    assert started.items == (StepItem(1, 0, 0), StepItem(2, 0, 0))
    (finished, *_) = rig.finish_step()
    assert [installed.request_id for installed in finished.installed] == [1, 2]
    assert [job.request_id for job in rig.told(HandoffJob)] == [0, 1, 2]


def test_a_batch_tells_what_each_of_its_requests_evicted() -> None:
    """Two prompts of two blocks in one step push out the four idle blocks of their worker."""
    rig = FleetRig(a_cluster(blocks_per_rank=4, handoff_share=1.0, step_tokens=64))
    rig.place(a_request(0, input_tokens=64, block_keys=KEYS))
    for number in (1, 2):
        rig.place(a_request(number, input_tokens=32))
    rig.finish_step()
    rig.hand_off(0)
    started = rig.told(StepStarted)[-1]
    assert [item.request_id for item in started.items] == [1, 2]
    assert [key for _, keys in started.evicted for key in keys] == [4, 3, 2, 1]


# ---- hand-off share ---------------------------------------------------------------------------------


def test_a_worker_stalls_above_its_hand_off_share_and_resumes() -> None:
    """Of 16 blocks a share of 1/4 is 4: two waiting hand-offs of 3 stall the worker, one does not (D8)."""
    rig = FleetRig(a_cluster(blocks_per_rank=16, decode=TINY_POOL))
    for number in range(3):
        rig.place(a_request(number, input_tokens=40))
    assert kinds(rig.finish_step()) == ["StepFinished", "StepStarted"]
    assert kinds(rig.finish_step()) == ["StepFinished", "WorkerStalled"]
    assert rig.worker().handoff_blocks == 6
    assert kinds(rig.copy_done(0)) == ["HandoffFinished", "WorkerResumed", "StepStarted"]
    assert rig.worker().handoff_blocks == 3


def test_a_stalled_worker_that_is_lost_never_resumes() -> None:
    """Its copies end as they would, but nothing is said of a worker that is out of service."""
    rig = FleetRig(a_cluster(blocks_per_rank=8))
    rig.place(a_request(0, input_tokens=48))
    assert "WorkerStalled" in kinds(rig.finish_step())
    rig.lose_rank(LEFT.first_rank)
    assert kinds(rig.copy_done(0)) == ["HandoffFinished"]


def test_a_share_that_is_just_reached_does_not_stall() -> None:
    """More than the share stalls, exactly the share does not."""
    rig = FleetRig(a_cluster(blocks_per_rank=12))
    rig.place(a_request(0, input_tokens=48))
    assert kinds(rig.finish_step()) == ["StepFinished"]
    rig.place(a_request(1, input_tokens=1))
    assert kinds(rig.finish_step()) == ["StepFinished", "WorkerStalled"]


def test_the_share_is_of_all_ranks_of_the_worker() -> None:
    """A quarter of the degree-2 worker's 32 blocks is 8: two hand-offs of 3 do not stall it."""
    rig = FleetRig(a_cluster(blocks_per_rank=16))
    for number in range(2):
        rig.place(a_request(number, input_tokens=40), PAIR)
        rig.finish_step(PAIR)
    assert rig.worker(PAIR).handoff_blocks == 6
    assert rig.told(WorkerStalled) == []


# ---- decode side ------------------------------------------------------------------------------------


def test_the_next_in_line_is_handed_off_when_a_sequence_ends() -> None:
    """One decode slot: the second hand-off starts when the first sequence has ended."""
    rig = FleetRig(a_cluster(decode=TINY_POOL))
    rig.place(a_request(0), LEFT)
    rig.place(a_request(1), RIGHT)
    rig.finish_step(LEFT)
    rig.finish_step(RIGHT)
    assert [job.request_id for job in rig.told(HandoffJob)] == [0]
    rig.hand_off(0)
    assert [job.request_id for job in rig.told(HandoffJob)] == [0, 1]


def test_a_decode_rank_must_have_room_for_the_output_too() -> None:
    """Two sequences of 40 + 20 tokens do not fit 100 together, although their prompts do."""
    decode = DecodeConfig(ranks=1, slots_per_rank=9, tokens_per_rank=100)
    rig = FleetRig(a_cluster(decode=decode))
    for number, worker in enumerate((LEFT, RIGHT)):
        rig.place(a_request(number, output_tokens=20), worker)
        rig.finish_step(worker)
    assert [job.request_id for job in rig.told(HandoffJob)] == [0]


def a_line_behind_a_large_sequence() -> FleetRig:
    """Request 0 decodes, 1 waits since it is too large beside it, and 2, which fits, waits behind 1."""
    decode = DecodeConfig(ranks=1, slots_per_rank=3, tokens_per_rank=100)
    rig = FleetRig(a_cluster(decode=decode, handoff_share=1.0))
    for number, worker, tokens in ((0, LEFT, 60), (1, RIGHT, 60), (2, PAIR, 20)):
        rig.place(a_request(number, input_tokens=tokens), worker)
        rig.finish_step(worker)
    assert [job.request_id for job in rig.told(HandoffJob)] == [0]
    return rig


def test_cancelling_the_head_of_the_line_lets_the_next_one_in() -> None:
    """The line moves up at once when a request that waits for decode room is cancelled."""
    rig = a_line_behind_a_large_sequence()
    rig.cancel(1)
    assert [job.request_id for job in rig.told(HandoffJob)] == [0, 2]


def test_losing_the_worker_at_the_head_of_the_line_lets_the_next_one_in() -> None:
    """The line moves up at once when a request that waits for decode room loses its worker."""
    rig = a_line_behind_a_large_sequence()
    rig.lose_rank(RIGHT.first_rank)
    assert [job.request_id for job in rig.told(HandoffJob)] == [0, 2]


def test_the_first_token_is_told_once() -> None:
    """A first token that the engine tells twice is one fact: the TTFT ends at the first of them."""
    rig = FleetRig()
    rig.place(a_request(0))
    rig.finish_step()
    rig.copy_done(0)
    assert kinds(rig.first_token(0)) == ["FirstTokenEmitted"]
    assert rig.first_token(0) == []
