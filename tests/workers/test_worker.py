"""One worker's queue and what it batches into a step (D3, D5)."""

from collections.abc import Sequence

import pytest

from tests.support.builders import BLOCK_TOKENS, a_request
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.orders import Prefill
from vertumnus.domain.request import Request
from vertumnus.workers.worker import Occupancy, Worker

GROUP = CpGroup(2, 2)


def a_worker(*requests: Request, blocks_per_rank: int = 16) -> Worker:
    """A worker with *requests* in its queue, first come, first served."""
    worker = Worker(GROUP, blocks_per_rank, BLOCK_TOKENS)
    for request in requests:
        enqueue(worker, request)
    return worker


def enqueue(worker: Worker, request: Request, priority: int = 0, after: tuple[int, ...] = ()) -> None:
    """Queue a request as an order does."""
    worker.enqueue(Prefill(request.request_id, 0, GROUP, priority, after, 1, 0), request)


def step(worker: Worker, step_tokens: int = 0) -> list[int]:
    """Take the next step, settle it at once and return its requests."""
    taken = take(worker, step_tokens)
    for occupancy in taken:
        worker.settle(occupancy)
        worker.leave(occupancy)
    return ids(taken)


def take(worker: Worker, step_tokens: int = 0) -> list[Occupancy]:
    """Take the next step's requests."""
    return worker.take_ready(step_tokens)[0]


def ids(taken: Sequence[Occupancy]) -> list[int]:
    """Return the requests of a step."""
    return [occupancy.request.request_id for occupancy in taken]


def test_queue_runs_by_priority_then_by_order() -> None:
    """Lower priority first; equal ones keep the order in which they were queued."""
    worker = a_worker()
    for number, priority in enumerate([5, 3, 5, 3, 1]):
        enqueue(worker, a_request(number), priority)
    assert worker.queued_ids() == [4, 1, 3, 0, 2]
    assert [step(worker) for _ in range(5)] == [[4], [1], [3], [0], [2]]
    assert worker.queued == 0


def test_without_step_tokens_each_request_has_its_own_step() -> None:
    """step_tokens = 0 is one request a step, however short (the paper's grid)."""
    worker = a_worker(a_request(0, input_tokens=1), a_request(1, input_tokens=1))
    assert [step(worker), step(worker)] == [[0], [1]]


@pytest.mark.parametrize(
    ("step_tokens", "first_step"),
    [(1, [0]), (40, [0]), (79, [0]), (80, [0, 1]), (119, [0, 1]), (120, [0, 1, 2]), (1_000, [0, 1, 2])],
)
def test_a_step_takes_what_fits_its_tokens(step_tokens: int, first_step: list[int]) -> None:
    """Three prompts of 40 uncached tokens: the first always, more while they fit exactly or better."""
    worker = a_worker(*(a_request(number, input_tokens=40) for number in range(3)))
    assert step(worker, step_tokens) == first_step
    assert worker.queued_ids() == [number for number in range(3) if number not in first_step]


def test_a_request_that_is_too_long_is_overtaken_once() -> None:
    """What does not fit beside the first is skipped for a later one, and leads the next step."""
    worker = a_worker(
        a_request(0, input_tokens=40), a_request(1, input_tokens=90), a_request(2, input_tokens=30)
    )
    assert [step(worker, 70), step(worker, 70)] == [[0, 2], [1]]


def test_only_uncached_tokens_count() -> None:
    """A prompt of 72 tokens whose first 64 are resident needs 8 of a step's tokens."""
    prefix = (1, 2, 3, 4)
    worker = a_worker(a_request(0, input_tokens=64, block_keys=prefix))
    step(worker)
    enqueue(worker, a_request(1, input_tokens=40))
    enqueue(worker, a_request(2, input_tokens=72, block_keys=prefix))
    assert step(worker, 48) == [1, 2]


def test_the_cached_part_of_the_first_request_leaves_its_tokens_to_others() -> None:
    """A hit of 64 of 72 tokens takes 8 of the 48, so a prompt of 40 fits beside it."""
    prefix = (1, 2, 3, 4)
    worker = a_worker(a_request(0, input_tokens=64, block_keys=prefix))
    step(worker)
    enqueue(worker, a_request(1, input_tokens=72, block_keys=prefix))
    enqueue(worker, a_request(2, input_tokens=40))
    assert step(worker, 48) == [1, 2]


def test_a_partial_hit_continues_the_round_of_the_ranks() -> None:
    """Behind one cached block, block 1 is on the second rank: the regular layout, which needs no words."""
    worker = a_worker(a_request(0, input_tokens=16, block_keys=(1,)))
    step(worker)
    enqueue(worker, a_request(1, input_tokens=50, block_keys=(1, 2, 3)))
    (occupancy,) = take(worker)
    assert [slot // 16 for slot in occupancy.slots] == [2, 3, 2, 3]
    assert worker.settle(occupancy) is None


def test_a_block_is_not_computed_twice_in_a_step() -> None:
    """Requests that share an uncached block run in two steps, the second one with the hit (D5)."""
    worker = a_worker(
        a_request(0, input_tokens=40, block_keys=(1, 2)),
        a_request(1, input_tokens=40, block_keys=(1, 3)),
        a_request(2, input_tokens=40, block_keys=(7, 8)),
    )
    assert step(worker, 1_000) == [0, 2]
    (second,) = take(worker, 1_000)
    assert (second.request.request_id, second.cached_blocks) == (1, 1)


def test_sharing_what_is_resident_already_is_no_clash() -> None:
    """Two prompts below one resident prefix run in one step; each computes only its own end."""
    worker = a_worker(a_request(0, input_tokens=32, block_keys=(1, 2)))
    step(worker)
    enqueue(worker, a_request(1, input_tokens=48, block_keys=(1, 2, 3)))
    enqueue(worker, a_request(2, input_tokens=48, block_keys=(1, 2, 4)))
    taken = take(worker, 100)
    assert [(o.request.request_id, o.cached_blocks) for o in taken] == [(1, 2), (2, 2)]


def test_a_guard_names_queued_requests_only() -> None:
    """`after` holds a request back while the named one is in this queue, taken in the same step included."""
    worker = a_worker()
    enqueue(worker, a_request(1), priority=1)
    enqueue(worker, a_request(0), after=(1, 77))
    enqueue(worker, a_request(2), priority=1, after=(99,))
    assert ids(take(worker, 1_000)) == [1, 2]
    assert ids(take(worker, 1_000)) == [0]


@pytest.mark.parametrize("after", [(), (1,)])
def test_nobody_waits_for_one_that_was_queued_again(after: tuple[int, ...]) -> None:
    """1 was to run after 0, whose step failed: 0 is queued again, behind 1, and may even wait for it."""
    worker = a_worker(a_request(0))
    enqueue(worker, a_request(1), after=(0,))
    (failed,) = take(worker)
    worker.leave(failed)
    enqueue(worker, a_request(0), after=after)
    assert [step(worker), step(worker)] == [[1], [0]]


def test_nothing_overtakes_a_first_request_without_room() -> None:
    """While the first ready request lacks room nothing runs, so it cannot starve; then it runs first."""
    worker = a_worker(a_request(0, input_tokens=64), blocks_per_rank=4)
    (running,) = take(worker)
    worker.settle(running)
    enqueue(worker, a_request(1, input_tokens=96))
    enqueue(worker, a_request(2, input_tokens=16))
    assert worker.take_ready(1_000) == ([], [])
    assert worker.queued_ids() == [1, 2]
    assert worker.cache.pinned == 4
    worker.leave(running)
    assert step(worker, 96) == [1]


def test_a_later_request_without_room_waits_for_the_next_step() -> None:
    """The step starts with those that have room; the one that has none stays in the queue, unpinned."""
    worker = a_worker(a_request(0, input_tokens=64), a_request(1, input_tokens=96), blocks_per_rank=4)
    assert ids(take(worker, 1_000)) == [0]
    assert (worker.queued_ids(), worker.cache.used) == ([1], 4)


def test_a_queued_request_touches_its_prefix_and_pins_nothing() -> None:
    """What waits keeps its blocks recent, but what runs may take them (D4)."""
    worker = a_worker(
        a_request(0, input_tokens=64, block_keys=(1, 2, 3, 4)),
        a_request(1, input_tokens=64, block_keys=(5, 6, 7, 8)),
        blocks_per_rank=4,
    )
    step(worker), step(worker)
    enqueue(worker, a_request(2, input_tokens=64, block_keys=(1, 2, 3, 4)))
    assert worker.cache.pinned == 0
    enqueue(worker, a_request(3, input_tokens=64), priority=-1)
    taken, reservations = worker.take_ready(0)
    assert ids(taken) == [3]
    assert [key for gone in reservations[0].evicted for key in gone.keys] == [7, 5, 8, 6]


def test_leaving_gives_everything_back() -> None:
    """After the hand-off pins and private slots are gone and the whole blocks stay resident."""
    worker = a_worker(a_request(0, input_tokens=40))
    (occupancy,) = take(worker)
    assert (len(occupancy.slots), len(occupancy.private), occupancy.holds_blocks) == (3, 3, True)
    assert worker.settle(occupancy) is None
    assert (occupancy.private, len(occupancy.path)) == (occupancy.slots[2:], 2)
    worker.leave(occupancy)
    assert (occupancy.private, occupancy.path, occupancy.holds_blocks) == ([], (), False)
    assert (worker.cache.used, worker.cache.resident, worker.cache.pinned) == (2, 2, 0)


def test_an_irregular_layout_is_told_block_by_block() -> None:
    """When a rank was full, settle names the rank of each new block; the regular layout needs no words."""
    worker = a_worker(a_request(0, input_tokens=40), blocks_per_rank=3)
    step(worker)
    worker.cache.reserve(0, 1), worker.cache.reserve(0, 1)
    enqueue(worker, a_request(1, input_tokens=32, block_keys=(5, 6)))
    (occupancy,) = take(worker)
    assert [slot // 3 for slot in occupancy.slots] == [3, 3]
    assert worker.settle(occupancy) == (3, 3)


def test_dequeue_says_whether_it_was_there() -> None:
    """Only a queued request can be taken out, once; the others keep their order."""
    worker = a_worker(*(a_request(number) for number in range(3)))
    assert (worker.dequeue(1), worker.dequeue(1), worker.dequeue(9)) == (True, False, False)
    assert worker.empty_queue() == (0, 2)
    assert worker.queued == 0
