"""Forecasts computed by a process beside the run: the same answers, and a death costs one question."""

import os
import signal
import sys
from pathlib import Path
from queue import Queue
from subprocess import PIPE, Popen

import pytest

from tests.support.builders import a_request, shared_prefix_requests
from tests.support.forecasts import SimRig, assumed
from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import ForecastFailed, ForecastFinished, InputFact
from vertumnus.domain.move import Move
from vertumnus.domain.orders import Forecast
from vertumnus.domain.units import SECOND
from vertumnus.forecast import child_process
from vertumnus.forecast.child import NICENESS
from vertumnus.forecast.child_process import READY, ChildForecasts, receive, send
from vertumnus.forecast.question import Questions
from vertumnus.forecast.trial import answer

MERGE = Move("merge", (CpGroup(6, 1), CpGroup(7, 1)), (CpGroup(6, 2),))
PATIENCE_S = 60


class Mailbox:
    """An engine that only takes posts."""

    def __init__(self) -> None:
        self.posted: Queue[InputFact] = Queue()

    def post(self, fact: InputFact) -> None:
        self.posted.put(fact)

    def next(self) -> InputFact:
        return self.posted.get(timeout=PATIENCE_S)


@pytest.fixture
def rig() -> SimRig:
    """A pool that has served some requests."""
    rig = SimRig([*shared_prefix_requests([(n % 3, n % 6, 1 + n % 9) for n in range(30)])])
    rig.loop.serve(iter(rig.requests))
    return rig


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def forecasts(rig, mailbox):
    """What carries out the orders, and its child."""
    with ChildForecasts(Questions(rig.fleet, rig.control, assumed), mailbox) as forecasts:
        yield forecasts


def order(number: int, *moves: Move, **more) -> Forecast:
    return Forecast(number, moves, SECOND, **more)


def test_the_child_answers_as_this_process_would(rig, mailbox, forecasts) -> None:
    """Snapshot and recent arrivals go there, the outcomes come back, in the order of the questions."""
    now = rig.engine.now()
    for number in (1, 2):
        forecasts(order(number, MERGE), now)
    expected = answer(Questions(rig.fleet, rig.control, assumed).put(order(9, MERGE), now))
    assert [mailbox.next() for _ in range(2)] == [ForecastFinished(0, n, expected) for n in (1, 2)]
    assert expected[0].requests > 0


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="cores are not shared out by sessions")
def test_the_child_stands_back_as_a_session(rig, mailbox, forecasts) -> None:
    """Where sessions share the cores, a process's niceness counts inside its session only."""
    forecasts(order(1), rig.engine.now())
    mailbox.next()
    told = Path(f"/proc/{forecasts._child.pid}/autogroup").read_text()
    assert told.split()[-2:] == ["nice", str(NICENESS)]


def test_what_goes_wrong_there_is_told(rig, mailbox, forecasts) -> None:
    """A move that is illegal by then, or the hindsight of a forecast that nobody kept."""
    absent = CpGroup(4, 4)
    forecasts(order(1, Move("split", (absent,), absent.halves)), rig.engine.now())
    forecasts(order(2, MERGE, hindsight_of=7), rig.engine.now())
    told = {fact.forecast_id: fact.reason for fact in (mailbox.next(), mailbox.next())}
    assert "there is no worker 4x4" in told[1] and told[2] == "the pool of forecast 7 was not kept"


def test_a_child_that_dies_costs_one_question(rig, mailbox, forecasts) -> None:
    """The question is told as failed, with the signal; the next one gets a new child."""
    os.kill(forecasts._child.pid, signal.SIGKILL)
    forecasts(order(1), rig.engine.now())
    failed = mailbox.next()
    assert isinstance(failed, ForecastFailed) and "exit code -9" in failed.reason
    forecasts(order(2), rig.engine.now())
    assert isinstance(mailbox.next(), ForecastFinished)


SAYS = "import pickle, struct, sys; said = {}; sys.stdout.buffer.write(struct.pack('<Q', len(said)) + said)"


class Noisy:
    """Unpickled, prints past Python to where the answers go, and is None then."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, ("(__import__('os').system('echo noise'), None)[1]",)


@pytest.mark.parametrize(
    ("odd", "said"),
    [(Noisy(), "'NoneType' object has no attribute 'durations'"), (lambda: None, "cannot be asked: ")],
    ids=["printed", "unpicklable"],
)
def test_what_is_odd_about_a_question_costs_that_question(rig, mailbox, odd, said) -> None:
    """Noise on the child's stdout is no answer, and what cannot be sent is told; the next one is answered."""
    assumptions = iter((odd, assumed()))
    with ChildForecasts(Questions(rig.fleet, rig.control, lambda: next(assumptions)), mailbox) as forecasts:
        forecasts(order(1), rig.engine.now())
        forecasts(order(2), rig.engine.now())
        failed, finished = mailbox.next(), mailbox.next()
    assert isinstance(failed, ForecastFailed) and said in failed.reason
    assert isinstance(finished, ForecastFinished)


@pytest.mark.parametrize(
    ("script", "patience_s", "said"),
    [
        (
            "import sys, struct; sys.stdout.buffer.write(struct.pack('<Q', 4) + b'abcd')",
            PATIENCE_S,
            "UnpicklingError",
        ),
        ("import sys; sys.stdin.buffer.read()", 0.05, "nothing in 0.05 s"),
    ],
    ids=["garbage", "silence"],
)
def test_a_child_that_answers_nothing_costs_one_question(
    rig, mailbox, forecasts, monkeypatch, script, patience_s, said
) -> None:
    """Garbage or silence for longer than PATIENCE_S is told as failed; the next question gets a new child."""
    forecasts._child.kill()
    forecasts._child.communicate()
    forecasts._child = Popen([sys.executable, "-c", script], stdin=PIPE, stdout=PIPE)
    with monkeypatch.context() as impatient:
        impatient.setattr(child_process, "PATIENCE_S", patience_s)
        forecasts(order(1), rig.engine.now())
        failed = mailbox.next()
    assert isinstance(failed, ForecastFailed) and said in failed.reason
    forecasts(order(2), rig.engine.now())
    assert isinstance(mailbox.next(), ForecastFinished)


def test_the_child_is_ready_before_anything_is_asked(forecasts) -> None:
    """Its imports are done and it has stood back, so that a run's clock may start."""
    assert os.getpriority(os.PRIO_PROCESS, forecasts._child.pid) >= NICENESS


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("raise SystemExit(3)", "ended (exit code 3)"),
        (SAYS.format("pickle.dumps('good morning')"), "said 'good morning' instead of being ready"),
        (SAYS.format("b'abcd'"), "UnpicklingError"),
        ("import sys; sys.stdin.buffer.read()", "nothing in 0.05 s"),
    ],
    ids=["dead", "other", "garbage", "silent"],
)
def test_a_child_that_does_not_get_ready_is_told_when_it_is_asked(
    rig, mailbox, monkeypatch, script, said
) -> None:
    """The run starts without it; each question tries anew, and is answered as soon as one gets ready."""

    def spawn() -> Popen[bytes]:
        return Popen([sys.executable, "-c", script], stdin=PIPE, stdout=PIPE)

    with monkeypatch.context() as broken:
        broken.setattr(child_process, "_spawn", spawn)
        if "0.05" in said:
            broken.setattr(child_process, "READY_S", 0.05)
        with ChildForecasts(Questions(rig.fleet, rig.control, assumed), mailbox) as forecasts:
            assert forecasts._child is None
            forecasts(order(1), rig.engine.now())
            failed = mailbox.next()
            broken.undo()
            forecasts(order(2), rig.engine.now())
            finished = mailbox.next()
    assert isinstance(failed, ForecastFailed) and said in failed.reason
    assert isinstance(finished, ForecastFinished)


def test_hindsight_meets_the_arrivals_that_came(rig, mailbox, forecasts) -> None:
    """The kept pool, not the present one, with the requests that have arrived since."""
    middle = SimRig(rig.requests)
    kept: list[Questions] = []

    def look() -> None:
        if not kept and middle.engine.now() >= 40_000_000:
            kept.append(Questions(middle.fleet, middle.control, assumed))
            kept[0].put(order(1, MERGE, is_kept=True), middle.engine.now())

    middle.loop.serve(iter(middle.requests), look)
    question = kept[0].put(order(2, MERGE, hindsight_of=1), middle.engine.now())
    at = question.snapshot.at_ns
    assert [request.request_id for request in question.future] == [
        request.request_id for request in rig.requests if request.arrival_ns > at
    ]
    assert answer(question)[0].ttft_mean_ns == middle.mean_ttft_ns(at)


def test_leaving_ends_the_child(rig, mailbox) -> None:
    """Whatever it is at, and without an answer."""
    with ChildForecasts(Questions(rig.fleet, rig.control, assumed), mailbox) as forecasts:
        child = forecasts._child
        forecasts(order(1, MERGE), rig.engine.now())
    assert child.poll() is not None and forecasts._child is None


def test_a_request_is_counted_while_it_has_no_first_token() -> None:
    """The open request is counted until its first token, not until its end."""
    rig = SimRig([a_request(0, output_tokens=50)])
    assert rig.question_at(0) is not None
    waiting = []
    again = SimRig(rig.requests)
    again.loop.serve(
        iter(again.requests),
        lambda: waiting.append((len(again.fleet.awaiting_first_token()), bool(again.waited_until_ns))),
    )
    assert {count for count, has_token in waiting if has_token} == {0}
    assert {count for count, has_token in waiting if not has_token} == {1}


def test_a_child_whose_run_is_gone_ends_without_a_word() -> None:
    """A run that is killed reads no answer, and its terminal shows no traceback of its forecasts."""
    with Popen(
        [sys.executable, "-m", "vertumnus.forecast.child"], stdin=PIPE, stdout=PIPE, stderr=PIPE
    ) as child:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        assert receive(child.stdout) == READY
        child.stdout.close()
        send(child.stdin, "what cannot be answered")
        assert child.stderr.read() == b"" and child.wait(60) == 0
