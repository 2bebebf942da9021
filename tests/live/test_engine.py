"""The live engine end to end, without policy: what its ranks generate is what HF's Qwen3 generates."""

import os
import signal
import threading

import pytest

from tests.support.greedy import differs_from_hf
from tests.support.live_driver import (
    BLOCK_TOKENS,
    ENDLESS,
    LEFT,
    PAIR,
    RIGHT,
    Driver,
    a_cluster,
    a_plan,
    running,
)
from tests.support.rank_processes import freeze
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.facts import RequestCancelled, TimerFired
from vertumnus.domain.jobs import (
    DecodeDone,
    FirstToken,
    HandoffDone,
    HandoffJob,
    JobError,
    StepJob,
    StepWork,
    StopJob,
)
from vertumnus.domain.units import SECOND
from vertumnus.live import calibrate as calibration
from vertumnus.live.calibrate import calibrate
from vertumnus.live.config import CalibrationConfig
from vertumnus.live.rank_pool import CALIBRATION_EPOCH

pytestmark = pytest.mark.live


@pytest.mark.parametrize("worker", [PAIR, LEFT, RIGHT], ids=str)
@pytest.mark.parametrize("input_tokens", [1, 16, 101])
def test_output_equals_hf(shared: Driver, worker: CpGroup, input_tokens: int) -> None:
    """Prefill at any degree, hand-off and decode give HF's greedy output, from one token up."""
    request = shared.prompt(input_tokens)
    output = shared.generate(worker, request, 8)
    assert differs_from_hf(output, shared.prompts[request]) is None


@pytest.mark.parametrize("input_tokens", [1, 101])
def test_output_equals_hf_when_kv_is_sent(pairwise: Driver, input_tokens: int) -> None:
    """Blocks that reach the decode rank as messages from two owners give the same output."""
    request = pairwise.prompt(input_tokens)
    output = pairwise.generate(PAIR, request, 8)
    assert differs_from_hf(output, pairwise.prompts[request]) is None


@pytest.mark.parametrize("worker", [PAIR, LEFT], ids=str)
def test_prefix_hit_computes_the_rest_only(shared: Driver, worker: CpGroup) -> None:
    """A prompt whose first 64 tokens are in another's slots gives HF's output for the whole prompt."""
    first = shared.prompt(80)
    step = shared.step(worker, first)
    shared.finish_step(step)
    second = shared.prompt(107, like=first, shared=64)
    hit = shared.step(worker, second, reused=step.works[0].slots[: 64 // BLOCK_TOKENS])
    shared.finish_step(hit)
    output = shared.finish(shared.hand_off(hit, 8))
    assert differs_from_hf(output, shared.prompts[second]) is None


def test_prefix_of_another_prompt_shows(shared: Driver) -> None:
    """Negative control: the slots of a prefix that is not the prompt's give another output."""
    first, second = shared.prompt(80), shared.prompt(107)
    step = shared.step(PAIR, first)
    shared.finish_step(step)
    wrong = shared.step(PAIR, second, reused=step.works[0].slots[: 64 // BLOCK_TOKENS])
    shared.finish_step(wrong)
    output = shared.finish(shared.hand_off(wrong, 8))
    assert differs_from_hf(output, shared.prompts[second]) is not None


def test_one_step_of_two_requests(shared: Driver) -> None:
    """Requests that share a step each get their own output."""
    requests = [shared.prompt(33), shared.prompt(50)]
    works = tuple(
        StepWork(
            request, 0, len(shared.prompts[request]), 0, shared.slots(PAIR, len(shared.prompts[request]))
        )
        for request in requests
    )
    job = StepJob(shared.new_job(), PAIR, 0, works)
    shared.engine.submit(job)
    shared.finish_step(job)
    handoffs = [shared.hand_off_work(PAIR, work, 6) for work in works]
    for handoff in handoffs:
        output = shared.finish(handoff)
        assert differs_from_hf(output, shared.prompts[handoff.request_id]) is None


def test_workers_compute_side_by_side_and_decode_is_batched(shared: Driver) -> None:
    """Steps of three workers are under way at once; their sequences decode together, outputs as alone."""
    requests = {worker: shared.prompt(40) for worker in (PAIR, LEFT, RIGHT)}
    steps = [shared.step(worker, request) for worker, request in requests.items()]
    for step in steps:
        shared.finish_step(step)
    *long, short = [
        shared.hand_off(step, tokens) for step, tokens in zip(steps, (ENDLESS, ENDLESS, 64), strict=True)
    ]
    shared.finish(short)
    for handoff in long:  # they go on until they are told to stop, however late that is
        shared.engine.submit(StopJob(handoff.job_id, 0))
    for handoff in (*long, short):
        output = shared.finish(handoff)
        assert len(output) >= 64
        assert differs_from_hf(output[:8], shared.prompts[handoff.request_id]) is None
    told = [(type(one), one.job_id) for one in shared.told if isinstance(one, FirstToken | DecodeDone)]
    first_end = min(told.index((DecodeDone, handoff.job_id)) for handoff in (*long, short))
    assert all(told.index((FirstToken, handoff.job_id)) < first_end for handoff in (*long, short))


@pytest.mark.parametrize("transport", ["shared", "pairwise"])
def test_handoff_tells_its_stations_in_order(transport: str, request: pytest.FixtureRequest) -> None:
    """HandoffDone, FirstToken, DecodeDone, each once, at times that do not decrease."""
    driver: Driver = request.getfixturevalue(transport)
    prompt = driver.prompt(20)
    step = driver.step(PAIR, prompt)
    driver.finish_step(step)
    job = driver.hand_off(step, 3)
    driver.finish(job)
    stations = [one for one in driver.told if getattr(one, "job_id", None) == job.job_id]
    assert [type(one) for one in stations] == [HandoffDone, FirstToken, DecodeDone]
    times = [one.at for one in driver.told]
    assert times == sorted(times)


@pytest.mark.parametrize("transport", ["shared", "pairwise"])
def test_stopped_sequence_ends_early(transport: str, request: pytest.FixtureRequest) -> None:
    """A StopJob ends the decoding after the tokens so far, which are those of the full output."""
    driver: Driver = request.getfixturevalue(transport)
    prompt = driver.prompt(20)
    step = driver.step(PAIR, prompt)
    driver.finish_step(step)
    job = driver.hand_off(step, ENDLESS)
    driver.outcome(job.job_id, FirstToken)
    driver.engine.submit(StopJob(job.job_id, 0))
    ended = driver.outcome(job.job_id, DecodeDone)
    assert isinstance(ended, DecodeDone)
    assert 1 <= ended.output_tokens == len(driver.tokens[prompt]) < ENDLESS
    assert differs_from_hf(driver.tokens[prompt][:5], driver.prompts[prompt]) is None


def test_stop_before_the_blocks_have_moved(pairwise: Driver) -> None:
    """A sequence that is stopped while its KV is on the way ends in order, too."""
    prompt = pairwise.prompt(100)
    step = pairwise.step(PAIR, prompt)
    pairwise.finish_step(step)
    owner = pairwise.engine.pids[1]
    freeze(owner)  # so that its blocks surely have not left
    job = pairwise.hand_off(step, ENDLESS)
    pairwise.engine.submit(StopJob(job.job_id, 0))
    os.kill(owner, signal.SIGCONT)
    ended = pairwise.outcome(job.job_id, DecodeDone)
    assert isinstance(ended, DecodeDone) and ended.output_tokens < ENDLESS


def test_step_of_another_epoch_is_refused(shared: Driver) -> None:
    """Ranks refuse a step of an epoch that is not theirs before any collective, and go on."""
    request = shared.prompt(40)
    job = shared.step(PAIR, request, epoch=1)
    error = shared.outcome(job.job_id)
    assert isinstance(error, JobError)
    assert "epoch 1, this rank serves 0x2 of epoch 0" in error.reason
    assert differs_from_hf(shared.generate(PAIR, request, 4), shared.prompts[request]) is None


def test_step_with_a_slot_of_another_worker_is_refused(shared: Driver) -> None:
    """A block table that leaves the worker ends the step and nothing else."""
    request = shared.prompt(40)
    work = StepWork(request, 0, 40, 0, shared.slots(RIGHT, 40))
    job = StepJob(shared.new_job(), LEFT, 0, (work,))
    shared.engine.submit(job)
    assert isinstance(shared.outcome(job.job_id), JobError)
    assert differs_from_hf(shared.generate(LEFT, request, 4), shared.prompts[request]) is None


def test_jobs_that_cannot_follow_are_refused(shared: Driver) -> None:
    """A hand-off without a finished step, and a step of another length than the prompt's, are errors."""
    request = shared.prompt(40)
    slots = shared.slots(LEFT, 40)
    with pytest.raises(ProtocolError, match="which no step has finished"):
        shared.engine.submit(HandoffJob(shared.new_job(), request, 0, LEFT, 0, 40, 4, slots))
    with pytest.raises(ProtocolError, match="a prompt of 40 tokens, a step of 39"):
        shared.engine.submit(StepJob(shared.new_job(), LEFT, 0, (StepWork(request, 0, 39, 0, slots),)))


def test_scheduled_facts_come_at_their_time(shared: Driver) -> None:
    """Facts arrive in order of time, none early, with the true time of delivery; then nothing is left."""
    now = shared.engine.now()
    due = [now + SECOND // 20, now, now + SECOND // 50]
    for number, at_ns in enumerate(due):
        shared.engine.schedule(TimerFired(0, f"t{number}", at_ns), at_ns)
    told = [shared.until(lambda fact: isinstance(fact, TimerFired)) for _ in due]
    assert [fact.name for fact in told] == ["t1", "t2", "t0"]
    assert all(fact.at >= fact.due_ns for fact in told)
    assert shared.engine.next() is None


def test_posted_fact_is_delivered(shared: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fact from another thread comes out of next, although a timer far away is scheduled."""
    far = shared.engine.now() + 3_600 * SECOND
    shared.engine.schedule(TimerFired(0, "far", far), far)
    poster = threading.Thread(target=shared.engine.post, args=(RequestCancelled(0, 3, "client"),))
    poster.start()
    fact = shared.until(lambda fact: isinstance(fact, RequestCancelled))
    assert fact.at < far
    poster.join()
    monkeypatch.setattr(shared.engine, "now", lambda: far)
    assert shared.engine.next() == TimerFired(far, "far", far)


def test_ctrl_c_is_the_coordinators_alone(shared: Driver) -> None:
    """A SIGINT that reaches ranks does not end them."""
    for pid in shared.engine.pids:
        os.kill(pid, signal.SIGINT)
    request = shared.prompt(20)
    assert differs_from_hf(shared.generate(PAIR, request, 4), shared.prompts[request]) is None


def test_calibration_measures_every_degree(nothing_left: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Degrees that no worker has yet are formed to be timed; then the run begins as it was planned."""
    monkeypatch.setattr(calibration, "ENOUGH_S", 0.0)
    points = CalibrationConfig(points=((16, 0), (200, 0), (100, 57)), repeats=1)
    plan = a_plan(a_cluster({1: 2}), calibration=points)
    with running(plan, CALIBRATION_EPOCH) as driver:
        prompts = driver.engine.client.prompts
        found = calibrate(driver.engine)
        assert driver.engine.client.prompts == prompts and driver.engine.next() is None
        request = driver.prompt(20)
        assert differs_from_hf(driver.generate(CpGroup(1, 1), request, 4), driver.prompts[request]) is None
    assert found.profile.degrees == (1, 2, 4)
    assert "no worker has degree 4, predicted by log2 C" in found.profile.provenance
    assert found.profile.kv_bytes_per_token == 2 * 2 * 2 * 32 * 4
    assert found.profile.decode_step_s > 0
    assert found.profile.prefill_time().predict(2, 200, 0) > 0
    assert found.cpu_s(1, 200, 0) > 0 and found.cpu_s(2, 200, 0) > 0
    assert f"fit error {found.fit.mean_error:.1%} mean" in found.profile.provenance
