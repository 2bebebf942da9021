"""Split and merge in place on real ranks: outputs do not change, cached blocks count, nothing is mixed."""

import os
import signal
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from tests.support.greedy import differs_from_hf
from tests.support.live_driver import BLOCK_TOKENS, TOLERANCE, Driver, a_cluster, a_plan, running
from tests.support.rank_processes import freeze, resident_bytes, threads_of
from vertumnus.domain.cluster import CpGroup, Lattice
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.facts import RankLost
from vertumnus.domain.jobs import Adopted, AdoptJob, JobError, StepDone, StepJob
from vertumnus.domain.units import RequestId, SlotId

pytestmark = pytest.mark.live

WHOLE, (LEFT, RIGHT) = CpGroup(0, 4), CpGroup(0, 4).halves
SINGLES = (*LEFT.halves, *RIGHT.halves)
LATTICE = Lattice(4, (1, 2, 4), 4)


def check_output(
    driver: Driver, worker: CpGroup, request: RequestId, reused: tuple[SlotId, ...] = ()
) -> None:
    """Serve a request and compare with the greedy output of a model that nobody moved.

    With *reused* blocks the final state is also compared with that of the prompt computed as a whole.
    """
    assert not reused or driver.departure(worker, request, reused) < TOLERANCE
    output = driver.generate(worker, request, 4, reused)
    assert differs_from_hf(output, driver.prompts[request]) is None


def written(driver: Driver, worker: CpGroup, input_tokens: int) -> StepJob:
    """Prefill a new prompt at *worker*; its slots are in the step."""
    step = driver.step(worker, driver.prompt(input_tokens))
    driver.finish_step(step)
    return step


def whole_blocks(step: StepJob) -> tuple[SlotId, ...]:
    """Return where the whole blocks of a step's only prompt lie."""
    (work,) = step.works
    return work.slots[: work.input_tokens // BLOCK_TOKENS]


def check_hit(driver: Driver, worker: CpGroup, prefix: StepJob, new_tokens: int) -> None:
    """Serve a longer prompt at *worker* that reuses every whole block of *prefix*."""
    slots = whole_blocks(prefix)
    cached = len(slots) * BLOCK_TOKENS
    first = prefix.works[0].request_id
    check_output(driver, worker, driver.prompt(cached + new_tokens, like=first, shared=cached), slots)


@pytest.fixture
def whole(moving: Driver) -> Driver:
    """Four ranks as one worker, whatever they were before."""
    moving.adopt(WHOLE)
    return moving


@pytest.mark.parametrize("new_tokens", [6, 45], ids=["queries travel", "keys travel"])
def test_merges_serve_blocks_of_their_halves(whole: Driver, new_tokens: int) -> None:
    """1 to 2 to 4: all blocks of the prefix lie on one rank of the new group, then on two."""
    whole.adopt(*SINGLES)
    ours, theirs = written(whole, SINGLES[1], 130), written(whole, SINGLES[3], 130)
    whole.adopt(LEFT, RIGHT)
    check_hit(whole, LEFT, ours, new_tokens)
    check_hit(whole, RIGHT, theirs, new_tokens)
    pair = written(whole, LEFT, 130)
    whole.adopt(WHOLE)
    for prefix in (ours, theirs, pair):
        check_hit(whole, WHOLE, prefix, new_tokens)


def test_splits_serve_what_their_ranks_hold(whole: Driver) -> None:
    """4 to 2 to 1: a half serves new prompts, and the leading blocks that lie on its own ranks."""
    prefix = written(whole, WHOLE, 100)
    whole.adopt(LEFT, RIGHT)
    own = whole_blocks(prefix)[:2]
    longer = whole.prompt(70, like=prefix.works[0].request_id, shared=2 * BLOCK_TOKENS)
    check_output(whole, LEFT, longer, own)
    check_output(whole, RIGHT, whole.prompt(70))
    whole.adopt(*SINGLES)
    for worker in SINGLES:
        check_output(whole, worker, whole.prompt(33))
    again = whole.prompt(40, like=prefix.works[0].request_id, shared=BLOCK_TOKENS)
    check_output(whole, SINGLES[0], again, own[:1])


def test_any_ownership_is_exact(whole: Driver) -> None:
    """Blocks of one prompt lie on the ranks in no order at all, twice on one and never on another."""
    request = whole.prompt(7 * BLOCK_TOKENS + 5)
    slots = tuple(whole.slot(rank) for rank in (3, 3, 0, 3, 1, 0, 3))
    step = whole.step(WHOLE, request, reused=())
    whole.finish_step(step)
    whole.finish_copying(whole.copy(WHOLE, list(zip(whole_blocks(step), slots, strict=True))))
    check_output(whole, WHOLE, whole.prompt(150, like=request, shared=7 * BLOCK_TOKENS), slots)


class Mover:
    """Random splits and merges of idle workers while the others compute."""

    def __init__(self, driver: Driver, seed: int) -> None:
        self.driver = driver
        self.random = Random(seed)
        self.workers = {WHOLE}
        self.prefixes: list[StepJob] = []
        self.hits = 0

    def moves(self) -> Iterator[tuple[set[CpGroup], set[CpGroup]]]:
        """Yield every legal move: its workers before and after."""
        for worker in sorted(self.workers):
            if worker.degree > 1:
                yield {worker}, set(worker.halves)
            if worker.sibling in self.workers and worker < worker.sibling:
                yield {worker, worker.sibling}, {worker.parent}

    def move(self) -> None:
        """Adopt one move in the middle of the others' steps, then serve a prompt at a worker it formed."""
        sources, targets = self.random.choice(list(self.moves()))
        running = [self.start(worker) for worker in sorted(self.workers - sources)]
        self.driver.adopt(*sorted(targets))
        self.workers = self.workers - sources | targets
        running.append(self.start(self.random.choice(sorted(targets))))
        for step in running:
            self.finish(step)

    def start(self, worker: CpGroup) -> StepJob:
        """Submit a step, behind a cached prefix that lies on the worker's ranks when there is one."""
        prefix, slots = self.usable(worker)
        shared = len(slots) * BLOCK_TOKENS
        self.hits += bool(slots)
        tokens = shared + self.random.randrange(1, 40)
        return self.driver.step(worker, self.driver.prompt(tokens, like=prefix, shared=shared), reused=slots)

    def usable(self, worker: CpGroup) -> tuple[RequestId | None, tuple[SlotId, ...]]:
        """Return a random known prompt with leading blocks on *worker*'s ranks, and their slots."""
        found = [(step.works[0].request_id, self.leading(step, worker)) for step in self.prefixes]
        held = [(request, slots) for request, slots in found if slots]
        return self.random.choice(held) if held and self.random.random() < 0.8 else (None, ())

    def leading(self, step: StepJob, worker: CpGroup) -> tuple[SlotId, ...]:
        """Return the leading slots of a step's prompt that lie on *worker*'s ranks."""
        slots = whole_blocks(step)
        per_rank = self.driver.engine.plan.blocks_per_rank
        strangers = (n for n, slot in enumerate(slots) if slot // per_rank not in worker.ranks)
        return slots[: next(strangers, len(slots))][:6]

    def finish(self, step: StepJob) -> None:
        """Decode a step's prompt; compare with itself computed as a whole, and with HF's model."""
        self.driver.finish_step(step)
        (work,) = step.works
        state = self.driver.final_state(step)
        anew = self.driver.step(step.worker, work.request_id)
        self.driver.finish_step(anew)
        assert np.abs(state - self.driver.final_state(anew)).max() < TOLERANCE
        output = self.driver.finish(self.driver.hand_off(step, 3))
        assert differs_from_hf(output, self.driver.prompts[work.request_id]) is None
        self.prefixes.append(step)


def test_fifty_random_moves_among_steps(whole: Driver) -> None:
    """Every output is the undisturbed one, and many prompts hit blocks of an earlier geometry."""
    mover = Mover(whole, seed=1)
    for _ in range(50):
        mover.move()
    assert mover.hits >= 25
    assert mover.workers <= set(LATTICE.groups())


def test_a_step_of_the_old_geometry_is_refused(whole: Driver) -> None:
    """Ranks refuse an old epoch, and a worker that is no more, before any collective; and go on."""
    request = whole.prompt(40)
    whole.adopt(LEFT, RIGHT)
    old_epoch = whole.step(LEFT, request, epoch=0)
    error = whole.outcome(old_epoch.job_id)
    assert isinstance(error, JobError) and "this rank serves 0x2 of epoch" in error.reason
    old_worker = whole.step(WHOLE, request)
    error = whole.outcome(old_worker.job_id)
    assert isinstance(error, JobError) and error.reason.count("this rank serves") == 4
    check_output(whole, LEFT, request)
    whole.adopt(WHOLE)
    check_output(whole, WHOLE, whole.prompt(40))


def test_nothing_is_adopted_within_a_step(whole: Driver) -> None:
    """A record for a rank whose step is not over is an error of the caller; the step is not touched."""
    step = whole.step(WHOLE, whole.prompt(200))
    with pytest.raises(ProtocolError, match="in the middle of a step"):
        whole.engine.submit(AdoptJob(whole.new_job(), 3, SINGLES[3], 1_000))
    whole.finish_step(step)


def test_no_step_before_the_acknowledgement(whole: Driver) -> None:
    """A step for a rank that has not acknowledged its epoch is an error of the caller."""
    told = whole.begin_adopt(LEFT, RIGHT)
    with pytest.raises(ProtocolError, match="has not yet acknowledged"):
        whole.step(RIGHT, whole.prompt(40))
    for job in told:
        assert isinstance(whole.outcome(job.job_id, Adopted), Adopted)
    check_output(whole, RIGHT, whole.prompt(40))


def test_rank_killed_while_it_adopts() -> None:
    """Its own job ends in an error, its sibling's in an acknowledgement; the untouched half serves on."""
    with running(a_plan(a_cluster({2: 2}))) as driver:
        driver.finish_step(driver.step(LEFT, driver.prompt(40)))
        freeze(driver.engine.pids[1])  # so that it surely has not answered
        running_step = driver.step(RIGHT, driver.prompt(300))
        alive, dead = driver.begin_adopt(*LEFT.halves)
        assert isinstance(driver.outcome(alive.job_id, Adopted), Adopted)
        os.kill(driver.engine.pids[1], signal.SIGKILL)
        error = driver.outcome(dead.job_id)
        assert isinstance(error, JobError) and error.reason == "rank 1 lost: killed by SIGKILL"
        assert [fact.rank for fact in driver.told if isinstance(fact, RankLost)] == [1]
        assert isinstance(driver.outcome(running_step.job_id, StepDone), StepDone)
        check_output(driver, LEFT.halves[0], driver.prompt(40))
        check_output(driver, RIGHT, driver.prompt(40))
        (late,) = driver.begin_adopt(LEFT.halves[1])
        error = driver.outcome(late.job_id)
        assert isinstance(error, JobError) and error.reason == "prefill rank 1 is gone"
        driver.adopt(*RIGHT.halves)
        check_output(driver, RIGHT.halves[1], driver.prompt(40))


@pytest.mark.long
def test_memory_and_threads_are_flat_over_two_hundred_moves() -> None:
    """200 random moves with steps between add no memory to a rank after a tour of the lattice.

    No process group is made after the start: each would bring a thread.
    """
    with running(a_plan(a_cluster({4: 1}, blocks_per_rank=2_048))) as driver:
        check_output(driver, WHOLE, driver.prompt(40))
        threads = [threads_of(pid) for pid in driver.engine.pids]
        mover = Mover(driver, seed=2)
        for _ in range(40):
            mover.move()
        before = [resident_bytes(pid) for pid in driver.engine.pids]
        for _ in range(200):
            mover.move()
        after = [resident_bytes(pid) for pid in driver.engine.pids]
        assert [threads_of(pid) for pid in driver.engine.pids] == threads
        grown = [late - early for early, late in zip(before, after, strict=True)]
        assert max(grown) < 16 << 20, grown
