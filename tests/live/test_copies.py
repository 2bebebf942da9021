"""Blocks that move between prefill ranks: the same bytes, beside compute, all or nothing."""

import os
import signal

import pytest

from tests.support.greedy import differs_from_hf
from tests.support.live_driver import BLOCK_TOKENS, SHOWS, TOLERANCE, Driver, a_cluster, a_plan, running
from tests.support.rank_processes import freeze, wait_for_end
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.facts import RankLost, TimerFired
from vertumnus.domain.jobs import CopyDone, JobError, StepDone, StepJob
from vertumnus.domain.units import Rank, RequestId, SlotId, to_ns

pytestmark = pytest.mark.live

WHOLE, (LEFT, RIGHT) = CpGroup(0, 4), CpGroup(0, 4).halves
FIRST, SECOND, THIRD, LAST = (*LEFT.halves, *RIGHT.halves)
BLOCK_BYTES = BLOCK_TOKENS * 2 * 2 * 2 * 32 * 4
"""Of model nano: 2 layers, keys and values, 2 heads of 32 float32."""


def a_prefix(driver: Driver, worker: CpGroup, blocks: int) -> StepJob:
    """Prefill a prompt of so many whole blocks at *worker*."""
    step = driver.step(worker, driver.prompt(blocks * BLOCK_TOKENS))
    driver.finish_step(step)
    return step


def moves_to(driver: Driver, step: StepJob, ranks: list[Rank]) -> list[tuple[SlotId, SlotId]]:
    """Return moves of a prompt's blocks to fresh slots, in turn on *ranks*."""
    slots = step.works[0].slots
    return [(slot, driver.slot(ranks[block % len(ranks)])) for block, slot in enumerate(slots)]


def longer(driver: Driver, step: StepJob, blocks: int) -> RequestId:
    """Make up a prompt that begins with so many blocks of a step's."""
    cached = blocks * BLOCK_TOKENS
    return driver.prompt(cached + 20, like=step.works[0].request_id, shared=cached)


def check_hit(driver: Driver, worker: CpGroup, step: StepJob, slots: list[SlotId]) -> None:
    """Serve a longer prompt behind the blocks in *slots*, which must be those of *step*."""
    request = longer(driver, step, len(slots))
    assert driver.departure(worker, request, tuple(slots)) < TOLERANCE
    output = driver.generate(worker, request, 4, tuple(slots))
    assert differs_from_hf(output, driver.prompts[request]) is None


@pytest.fixture
def halves(moving: Driver) -> Driver:
    """Four ranks as two workers."""
    moving.adopt(LEFT, RIGHT)
    return moving


def test_a_step_reads_copied_blocks(halves: Driver) -> None:
    """A prefix of one worker serves at the other; the outcome counts the bytes and the time."""
    step = a_prefix(halves, LEFT, 6)
    moves = moves_to(halves, step, [2, 3])
    done = halves.finish_copying(halves.copy(RIGHT, moves))
    assert done.payload_bytes == 6 * BLOCK_BYTES
    assert done.wire_ns > 0
    check_hit(halves, RIGHT, step, [destination for _, destination in moves])


@pytest.mark.parametrize("missing", [0, 3, 5])
def test_a_block_that_was_not_copied_shows(halves: Driver, missing: int) -> None:
    """Negative control: with one block missing the step computes something else."""
    step = a_prefix(halves, LEFT, 6)
    moves = moves_to(halves, step, [2, 3])
    halves.finish_copying(halves.copy(RIGHT, moves[:missing] + moves[missing + 1 :]))
    slots = tuple(destination for _, destination in moves)
    assert halves.departure(RIGHT, longer(halves, step, 6), slots) > SHOWS


def test_a_split_child_gets_its_missing_half(moving: Driver) -> None:
    """After a split each child takes the blocks that stayed with its sibling, both at once."""
    moving.adopt(LEFT, RIGHT)
    step = a_prefix(moving, LEFT, 6)
    slots = step.works[0].slots
    moving.adopt(FIRST, SECOND, RIGHT)
    to_first = [(slot, moving.slot(0)) for slot in slots[1::2]]
    to_second = [(slot, moving.slot(1)) for slot in slots[::2]]
    copies = [moving.copy(FIRST, to_first), moving.copy(SECOND, to_second)]
    for copy in copies:
        moving.finish_copying(copy)
    missing, other = iter(to_first), iter(to_second)
    at_first = [slot if block % 2 == 0 else next(missing)[1] for block, slot in enumerate(slots)]
    at_second = [slot if block % 2 == 1 else next(other)[1] for block, slot in enumerate(slots)]
    check_hit(moving, FIRST, step, at_first)
    check_hit(moving, SECOND, step, at_second)


def test_ranks_exchange_blocks_in_one_copy(moving: Driver) -> None:
    """Moves that cross, and one within a rank, end; nobody waits for somebody who waits for them."""
    moving.adopt(WHOLE)
    step = a_prefix(moving, WHOLE, 8)
    moves = moves_to(moving, step, [1, 0, 3, 3])
    moving.finish_copying(moving.copy(WHOLE, moves))
    check_hit(moving, WHOLE, step, [destination for _, destination in moves])


def test_shared_maps_hold_the_same_bytes(shared: Driver) -> None:
    """Destination slots equal their sources byte for byte; a copy to a worker of degree 1 counts alone."""
    step = a_prefix(shared, CpGroup(0, 2), 4)
    moves = moves_to(shared, step, [2])
    shared.finish_copying(shared.copy(CpGroup(2, 1), moves))
    for source, destination in moves:
        assert shared.block_bytes(source) == shared.block_bytes(destination)
        assert any(shared.block_bytes(source))


def test_a_copy_goes_on_beside_a_step(halves: Driver) -> None:
    """A rank that waits in the middle of a step takes blocks all the same, and the step is right."""
    step = a_prefix(halves, LEFT, 6)
    frozen = halves.engine.pids[3]
    freeze(frozen)
    request = halves.prompt(90)
    computing = halves.step(RIGHT, request)  # rank 2 waits for rank 3 in its first collective
    moves = moves_to(halves, step, [2])
    halves.finish_copying(halves.copy(RIGHT, moves))
    assert not any(isinstance(told, StepDone) and told.job_id == computing.job_id for told in halves.told)
    os.kill(frozen, signal.SIGCONT)
    halves.finish_step(computing)
    output = halves.finish(halves.hand_off(computing, 4))
    assert differs_from_hf(output, halves.prompts[request]) is None
    check_hit(halves, RIGHT, step, [destination for _, destination in moves])


def test_many_copies_among_steps(halves: Driver) -> None:
    """Forty copies to and fro under running steps: every output and every copied prefix is right."""
    prefixes = {worker: a_prefix(halves, worker, 3) for worker in (LEFT, RIGHT)}
    for _ in range(20):
        requests = {worker: halves.prompt(60) for worker in (LEFT, RIGHT)}
        steps = {worker: halves.step(worker, request) for worker, request in requests.items()}
        moves = {
            LEFT: moves_to(halves, prefixes[RIGHT], [0, 1]),
            RIGHT: moves_to(halves, prefixes[LEFT], [3, 2]),
        }
        copies = [halves.copy(worker, of_worker) for worker, of_worker in moves.items()]
        for step in steps.values():
            halves.finish_step(step)
        for copy in copies:
            halves.finish_copying(copy)
    for worker, source in ((LEFT, RIGHT), (RIGHT, LEFT)):
        check_hit(halves, worker, prefixes[source], [destination for _, destination in moves[worker]])
    for worker, step in steps.items():
        output = halves.finish(halves.hand_off(step, 4))
        assert differs_from_hf(output, halves.prompts[requests[worker]]) is None


def test_a_copy_to_strangers_is_refused(halves: Driver) -> None:
    """A destination outside the worker is an error of the caller."""
    with pytest.raises(ProtocolError, match="does not end in 2x2"):
        halves.copy(RIGHT, [(0, 1)])


def error_of(driver: Driver, job_id: int) -> str:
    """Return why a job ended in an error."""
    error = driver.outcome(job_id, CopyDone)
    assert isinstance(error, JobError)
    return error.reason


def test_source_killed_while_its_blocks_move() -> None:
    """The copy fails once, with the reason; other pairs and the destination's steps go on."""
    with running(a_plan(a_cluster({1: 4}), transport="pairwise")) as driver:
        lost, kept = a_prefix(driver, FIRST, 4), a_prefix(driver, SECOND, 4)
        victim = driver.engine.pids[0]
        freeze(victim)  # so that its blocks surely have not left
        both = moves_to(driver, lost, [2]) + moves_to(driver, kept, [2])
        copy = driver.copy(THIRD, both)
        os.kill(victim, signal.SIGKILL)
        # the copy may end before the loss is noticed; a timer keeps the engine waiting for that
        driver.engine.schedule(TimerFired(0, "patience", 0), driver.engine.now() + to_ns(20))
        driver.until(lambda fact: isinstance(fact, RankLost) and fact.rank == 0)
        assert "prefill rank 0" in error_of(driver, copy.job_id)
        late = driver.copy(THIRD, moves_to(driver, lost, [2]))
        assert error_of(driver, late.job_id) == "prefill rank 0 is gone"
        moves = moves_to(driver, kept, [2])
        driver.finish_copying(driver.copy(THIRD, moves))
        check_hit(driver, THIRD, kept, [destination for _, destination in moves])


def test_destination_killed_and_source_killed_in_shared_memory() -> None:
    """Without its destination a copy fails; a dead source's map is still as it was."""
    with running(a_plan(a_cluster({1: 4}))) as driver:
        step = a_prefix(driver, FIRST, 4)
        source, _, destination, *_ = driver.engine.pids
        freeze(destination)
        copy = driver.copy(THIRD, moves_to(driver, step, [2]))
        os.kill(destination, signal.SIGKILL)
        assert error_of(driver, copy.job_id) == "prefill rank 2 lost: killed by SIGKILL"
        os.kill(source, signal.SIGKILL)
        wait_for_end(source)
        moves = moves_to(driver, step, [3])
        driver.finish_copying(driver.copy(LAST, moves))
        check_hit(driver, LAST, step, [destination for _, destination in moves])
