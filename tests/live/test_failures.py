"""Ranks that die, freeze or never come up: told once, with a reason; the others go on; nothing is left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.greedy import differs_from_hf
from tests.support.live_driver import ENDLESS, Driver, a_cluster, a_plan, running
from tests.support.rank_processes import freeze, ranks_started_by, wait_for_end
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.facts import DecodeRankLost, RankLost, TimerFired
from vertumnus.domain.jobs import FirstToken, JobError
from vertumnus.domain.units import SECOND
from vertumnus.live import launch, rank_pool
from vertumnus.live.launch import StartError
from vertumnus.live.liveness import HEARTBEAT_NS

pytestmark = pytest.mark.live

PAIR, SINGLE = CpGroup(0, 2), CpGroup(2, 1)
SOLO_0, SOLO_1 = CpGroup(0, 1), CpGroup(1, 1)


def losses(driver: Driver) -> list[RankLost | DecodeRankLost]:
    """Return the losses told so far."""
    return [fact for fact in driver.told if isinstance(fact, RankLost | DecodeRankLost)]


def await_loss(driver: Driver) -> RankLost | DecodeRankLost:
    """Wait for the next loss."""
    lost = driver.until(lambda fact: isinstance(fact, RankLost | DecodeRankLost))
    assert isinstance(lost, RankLost | DecodeRankLost)
    return lost


def error_of(driver: Driver, job_id: int) -> str:
    """Return why a job ended in an error."""
    error = driver.outcome(job_id)
    assert isinstance(error, JobError)
    return error.reason


def drain(driver: Driver) -> None:
    """Take whatever is still to come."""
    while (told := driver.engine.next()) is not None:
        driver.told.append(told)


def serves(driver: Driver, worker: CpGroup, decode_rank: int = 0) -> bool:
    """Return whether a worker still gives HF's output through a decode rank."""
    request = driver.prompt(30)
    step = driver.step(worker, request)
    driver.finish_step(step)
    output = driver.finish(driver.hand_off(step, 4, decode_rank))
    return differs_from_hf(output, driver.prompts[request]) is None


def test_rank_killed_in_a_step() -> None:
    """A SIGKILL in a collective loses that rank, fails the step, and leaves the other worker at work.

    What its peer has in shared memory is still handed off, and a step for the broken worker is refused.
    """
    with running(a_plan(a_cluster({2: 1, 1: 1}))) as driver:
        finished = driver.step(PAIR, driver.prompt(50))
        driver.finish_step(finished)
        victim = driver.engine.pids[1]
        freeze(victim)  # so that its peer surely waits for it in the collective
        step = driver.step(PAIR, driver.prompt(50))
        os.kill(victim, signal.SIGKILL)
        lost = await_loss(driver)
        assert (type(lost), lost.rank, lost.incarnation) == (RankLost, 1, 0)
        assert lost.reason == "killed by SIGKILL"
        assert "rank 1 lost: killed by SIGKILL" in error_of(driver, step.job_id)
        output = driver.finish(driver.hand_off(finished, 4))
        assert differs_from_hf(output, driver.prompts[finished.works[0].request_id]) is None
        assert serves(driver, SINGLE)
        late = driver.step(PAIR, driver.prompt(20))
        assert "prefill rank 1 is gone" in error_of(driver, late.job_id)
        drain(driver)
        assert len(losses(driver)) == 1


def test_decode_rank_killed() -> None:
    """A dead decode rank fails its sequences, once each; the other decode rank takes new ones."""
    with running(a_plan(a_cluster({1: 1}, decode_ranks=2))) as driver:
        steps = [driver.step(SOLO_0, driver.prompt(30))]
        driver.finish_step(steps[0])
        handoff = driver.hand_off(steps[0], ENDLESS)
        driver.outcome(handoff.job_id, FirstToken)
        os.kill(driver.engine.pids[1], signal.SIGKILL)
        lost = await_loss(driver)
        assert (type(lost), lost.rank) == (DecodeRankLost, 0)
        assert "decode rank 0 lost: killed by SIGKILL" in error_of(driver, handoff.job_id)
        again = driver.hand_off(steps[0], 4)
        assert "decode rank 0 is gone" in error_of(driver, again.job_id)
        assert serves(driver, SOLO_0, decode_rank=1)
        drain(driver)
        assert len(losses(driver)) == 1


class Hourglass:
    """The clock by which ranks owe answers: it stands until it is turned, whatever the machine takes."""

    def __init__(self) -> None:
        self._now = time.monotonic_ns()

    def monotonic(self) -> float:
        """The machine's own: for the start and the end."""
        return time.monotonic()

    def monotonic_ns(self) -> int:
        """What has passed."""
        return self._now

    def let_pass(self, nanoseconds: int) -> None:
        """Let time pass."""
        self._now += nanoseconds


@pytest.fixture
def hourglass(monkeypatch: pytest.MonkeyPatch) -> Hourglass:
    """The clock of the rank pools to come."""
    hourglass = Hourglass()
    monkeypatch.setattr(rank_pool, "time", hourglass)
    return hourglass


def look_until(driver: Driver, seen: Callable[[], bool]) -> None:
    """Have the engine take in what arrives, and ask whom it has to, until *seen*."""
    while not seen():
        soon = driver.engine.now() + SECOND // 100
        driver.engine.schedule(TimerFired(0, "look", soon), soon)
        driver.until(lambda fact: isinstance(fact, TimerFired))


def owing(driver: Driver) -> list[tuple[str, int, str]]:
    """Return who owes which answer."""
    owed = driver.engine._pool._liveness._owed.items()
    return sorted((peer.pool, peer.rank, debt.debt) for peer, debt in owed if debt is not None)


def test_frozen_ranks_are_found_and_killed(hourglass: Hourglass) -> None:
    """A SIGSTOP in a step, and one without work, both count as losses after the limits; none is left."""
    with running(a_plan(a_cluster({1: 2}), step_timeout_s=20.0)) as driver:
        in_step, idle, decoding = driver.engine.pids
        for pid in (in_step, idle):
            freeze(pid)
        step = driver.step(SOLO_0, driver.prompt(30))
        reasons = {}
        for silent in ([("prefill", 0, "step"), ("prefill", 1, "ping")], [("prefill", 0, "step")]):
            hourglass.let_pass(HEARTBEAT_NS)
            look_until(driver, lambda silent=silent: owing(driver) == silent)  # who is well answers
            hourglass.let_pass(20 * SECOND + 1)
            lost = await_loss(driver)
            reasons[lost.rank] = lost.reason
        assert reasons[0] == "no answer to its step for 42.0 s (more than twice backend.step_timeout_s)"
        assert reasons[1] == "no answer to a ping for 20.0 s (more than backend.step_timeout_s)"
        assert "no answer to its step" in error_of(driver, step.job_id)
        assert driver.engine.pids == [decoding]
        for pid in (in_step, idle):
            wait_for_end(pid)


def test_broken_groups_are_replaced(hourglass: Hourglass) -> None:
    """A rank that was frozen for a while breaks a step and a transfer; the next ones meet anew.

    It has twice as long as those that wait for it.
    """
    with running(a_plan(a_cluster({2: 1}), transport="pairwise", step_timeout_s=5.0)) as driver:
        kept = driver.step(PAIR, driver.prompt(100))
        driver.finish_step(kept)
        frozen = driver.engine.pids[1]
        freeze(frozen)
        step = driver.step(PAIR, driver.prompt(50))
        handoff = driver.hand_off(kept, 4)
        assert "from prefill rank 1: " in error_of(driver, handoff.job_id)
        look_until(driver, lambda: owing(driver) == [("prefill", 1, "step")])  # its peer has given up
        hourglass.let_pass(10 * SECOND)
        look_until(driver, lambda: owing(driver) == [("prefill", 1, "step")])
        os.kill(frozen, signal.SIGCONT)
        assert "rank 0: " in error_of(driver, step.job_id)
        output = driver.finish(driver.hand_off(kept, 4))
        assert differs_from_hf(output, driver.prompts[kept.works[0].request_id]) is None
        assert serves(driver, PAIR)
        assert losses(driver) == []


def test_owner_killed_while_its_blocks_move() -> None:
    """A hand-off by messages fails when an owner dies; the pairs of other owners go on."""
    with running(a_plan(a_cluster({1: 2}), transport="pairwise")) as driver:
        step = driver.step(SOLO_0, driver.prompt(100))
        driver.finish_step(step)
        victim = driver.engine.pids[0]
        freeze(victim)  # so that its blocks surely have not left
        handoff = driver.hand_off(step, 4)
        os.kill(victim, signal.SIGKILL)
        assert "prefill rank 0" in error_of(driver, handoff.job_id)
        assert serves(driver, SOLO_1)


def test_exception_leaves_nothing(tmp_path: Path) -> None:
    """An error in the caller stops every rank; a second close does nothing; no map has a name."""
    with (
        pytest.raises(KeyboardInterrupt),
        running(a_plan(a_cluster({1: 1}), shared_dir=str(tmp_path))) as driver,
    ):
        pids = driver.engine.pids
        driver.step(SOLO_0, driver.prompt(1_500))
        assert list(tmp_path.iterdir()) == []
        raise KeyboardInterrupt
    driver.engine.close()
    for pid in pids:
        wait_for_end(pid)
    assert list(tmp_path.iterdir()) == []


COORDINATOR = """
import sys
from tests.support.live_driver import a_cluster, a_plan, running

with running(a_plan(a_cluster({1: 1}), shared_dir=sys.argv[1])) as driver:
    print(*driver.engine.pids, flush=True)
    sys.stdin.read()
"""


def test_killed_coordinator_leaves_nothing(tmp_path: Path) -> None:
    """A SIGKILL of the coordinator takes its ranks along, a frozen one too, and leaves no file."""
    command = [sys.executable, "-c", COORDINATOR, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as coordinator:
        assert coordinator.stdout is not None
        pids = [int(pid) for pid in coordinator.stdout.readline().split()]
        assert len(pids) == 2
        os.kill(pids[0], signal.SIGSTOP)
        coordinator.kill()
    for pid in pids:
        wait_for_end(pid)
    assert list(tmp_path.iterdir()) == []


def test_rank_that_cannot_start_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that ends during the start is named with its status and the last lines that it printed."""
    script = "import sys; print('no such luck', file=sys.stderr); sys.exit(3)"
    monkeypatch.setattr(launch, "_command", lambda *_: [sys.executable, "-c", script])
    with (
        pytest.raises(StartError, match=r"rank 0 ended .*exited with status 3[^$]*no such luck"),
        running(a_plan(a_cluster({1: 1}))),
    ):
        pass


def test_missing_ranks_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the time for the start is up, each rank that is missing is named, and none is left."""
    command = [sys.executable, "-c", "import signal; signal.pause()", "vertumnus.live.rank", "--parent"]
    monkeypatch.setattr(launch, "_command", lambda *_: [*command, str(os.getpid())])
    before = ranks_started_by(os.getpid())  # of engines that other tests share
    with pytest.raises(StartError) as failure, running(a_plan(a_cluster({1: 2}), start_timeout_s=0.2)):
        pass
    lines = str(failure.value).splitlines()
    assert lines == [
        "not all ranks were ready after 0.2 s (backend.start_timeout_s)",
        "decode rank 0: has not registered",
        "prefill rank 0: has not registered",
        "prefill rank 1: has not registered",
    ]
    assert ranks_started_by(os.getpid()) == before


def test_bad_input_found_by_a_rank_is_told_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that finds the user's input wrong ends the start with its message as a ConfigError."""
    script = "import sys; print('backend.weights: odd', file=sys.stderr); sys.exit(2)"
    monkeypatch.setattr(launch, "_command", lambda *_: [sys.executable, "-c", script])
    with pytest.raises(ConfigError, match=r"^backend\.weights: odd$"), running(a_plan(a_cluster({1: 1}))):
        pass
