"""Who owes an answer: frozen ranks show, busy ranks are left alone, a coordinator's pause blames nobody."""

from vertumnus.domain.units import SECOND
from vertumnus.live.liveness import HEARTBEAT_NS, Liveness
from vertumnus.live.messages import Peer

RANK = Peer("prefill", 0)


def watched() -> Liveness:
    """One rank, watched from 0 on, with 2 s for a ping and 4 s for a step."""
    liveness = Liveness(2 * SECOND)
    liveness.watch(RANK, 0)
    return liveness


def test_idle_rank_is_pinged_once_a_heartbeat() -> None:
    """A ping goes out after a heartbeat, and no second one before its answer."""
    liveness = watched()
    assert liveness.to_ping(HEARTBEAT_NS - 1) == []
    assert liveness.to_ping(HEARTBEAT_NS) == [RANK]
    liveness.owes(RANK, "ping", HEARTBEAT_NS)
    assert liveness.to_ping(10 * HEARTBEAT_NS) == []
    liveness.answered(RANK, "ping")
    assert liveness.to_ping(2 * HEARTBEAT_NS) == [RANK]


def test_unanswered_ping_is_overdue_after_the_limit() -> None:
    """A rank without work that says nothing for 2 s is named with the time that it was silent."""
    liveness = watched()
    liveness.owes(RANK, "ping", SECOND)
    assert liveness.overdue(3 * SECOND) == []
    (overdue,) = liveness.overdue(3 * SECOND + SECOND // 2)
    assert overdue.peer == RANK
    assert overdue.reason == "no answer to a ping for 2.5 s (more than backend.step_timeout_s)"


def test_step_may_take_twice_as_long() -> None:
    """A rank in a step is not pinged and has the limit of a step: its peers report a stuck rank first."""
    liveness = watched()
    liveness.owes(RANK, "step", 0)
    assert liveness.to_ping(3 * SECOND) == []
    assert liveness.overdue(4 * SECOND) == []
    (overdue,) = liveness.overdue(4 * SECOND + 1)
    assert overdue.reason == "no answer to its step for 4.0 s (more than twice backend.step_timeout_s)"


def test_a_rank_that_is_gone_owes_nothing() -> None:
    """What is sent to it afterwards goes nowhere: it cannot be lost a second time."""
    liveness = watched()
    liveness.forget(RANK)
    liveness.owes(RANK, "step", SECOND)
    assert liveness.overdue(60 * SECOND) == [] == liveness.to_ping(60 * SECOND)


def test_an_epoch_is_owed_like_a_ping() -> None:
    """A rank that does not acknowledge within 2 s is named; a pong from before does not pay for it."""
    liveness = watched()
    liveness.owes(RANK, "ping", 0)
    liveness.owes(RANK, "adopt", SECOND)
    liveness.answered(RANK, "ping")
    assert liveness.overdue(3 * SECOND) == []
    (overdue,) = liveness.overdue(4 * SECOND)
    assert overdue.reason == "no answer to its new epoch for 3.0 s (more than backend.step_timeout_s)"
    liveness.answered(RANK, "adopt")
    assert liveness.overdue(60 * SECOND) == []


def test_pong_does_not_pay_for_a_step() -> None:
    """The answer to a ping that was sent before a step leaves the step owed."""
    liveness = watched()
    liveness.owes(RANK, "ping", 0)
    liveness.owes(RANK, "step", SECOND)
    liveness.answered(RANK, "ping")
    assert len(liveness.overdue(6 * SECOND)) == 1
    liveness.answered(RANK, "step")
    assert liveness.overdue(60 * SECOND) == []


def test_forgotten_rank_owes_nothing() -> None:
    """A rank that is gone is neither asked nor blamed, and late answers of it do no harm."""
    liveness = watched()
    liveness.owes(RANK, "step", 0)
    liveness.forget(RANK)
    liveness.answered(RANK, "step")
    assert liveness.overdue(60 * SECOND) == []
    assert liveness.to_ping(60 * SECOND) == []
