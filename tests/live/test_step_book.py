"""Steps under way: one outcome for all ranks of a worker, whatever order and fate their answers have."""

import pytest

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.jobs import StepJob, StepWork
from vertumnus.live.messages import StepDone, StepFailed
from vertumnus.live.steps import StepBook

WORKER = CpGroup(2, 2)
JOB = StepJob(7, WORKER, 0, (StepWork(0, 0, 10, 0, (0,)), StepWork(1, 0, 10, 0, (1,))))


def done(compute_ns: int, *states: bytes | None) -> StepDone:
    """An answer to `JOB` with 5 ns of CPU time."""
    return StepDone(7, compute_ns, 5, states)


def test_slowest_rank_counts_and_states_are_gathered() -> None:
    """compute_ns is the maximum, CPU time the sum, and each final state comes from its one owner."""
    book = StepBook()
    book.begin(JOB)
    assert book.answer(3, done(30, None, b"one")) is None
    assert book.awaited
    result = book.answer(2, done(20, b"zero", None))
    assert result is not None and result.failure is None
    assert (result.compute_ns, result.cpu_ns) == (30, 10)
    assert result.final_hidden == {0: b"zero", 1: b"one"}
    assert not book.awaited


def test_next_step_waits_for_every_rank() -> None:
    """A worker with a rank that has not answered takes no other step."""
    book = StepBook()
    book.begin(JOB)
    book.answer(2, done(20, b"zero", b"one"))
    with pytest.raises(ProtocolError, match="in the middle of another one"):
        book.begin(JOB)


def test_ranks_of_an_open_step_take_no_step_of_another_worker() -> None:
    """Workers that overlap are of different geometries: their steps must not mix on any rank."""
    book = StepBook()
    book.begin(JOB)
    assert [rank for rank in range(5) if book.is_at(rank)] == [2, 3]
    for worker in (CpGroup(3, 1), CpGroup(0, 4)):
        with pytest.raises(ProtocolError, match="in the middle of another one"):
            book.begin(StepJob(8, worker, 1, JOB.works))
    book.begin(StepJob(9, CpGroup(0, 2), 1, JOB.works))


def test_failure_is_told_once_all_ranks_are_out_of_it() -> None:
    """One rank's failure ends the step when the others have answered, and the group is replaced."""
    book = StepBook()
    assert book.begin(JOB) == 0
    assert book.answer(2, StepFailed(7, "out of memory")) is None
    result = book.answer(3, StepFailed(7, "timed out"))
    assert result is not None
    assert result.failure == "rank 2: out of memory; rank 3: timed out"
    assert book.begin(JOB) == 1


def test_loss_is_told_at_once_and_once() -> None:
    """A lost rank ends the step for the fleet; the survivor's answer closes it without an outcome."""
    book = StepBook()
    book.begin(JOB)
    (result,) = book.lose(3, "killed by SIGKILL")
    assert result.failure == "rank 3 lost: killed by SIGKILL"
    assert not book.awaited
    assert book.answer(2, StepFailed(7, "connection closed")) is None
    assert book.begin(JOB) == 1


def test_both_ranks_lost_is_one_failure() -> None:
    """The second loss of a step is no second outcome."""
    book = StepBook()
    book.begin(JOB)
    assert len(list(book.lose(3, "killed"))) == 1
    assert list(book.lose(2, "killed")) == []


def test_loss_of_an_idle_rank_fails_no_step() -> None:
    """A rank that has answered, or has nothing to answer, takes no step with it."""
    book = StepBook()
    assert list(book.lose(0, "killed")) == []
    book.begin(JOB)
    book.answer(3, done(20, None, b"one"))
    assert list(book.lose(3, "killed")) == []
    result = book.answer(2, done(20, b"zero", None))
    assert result is not None and result.failure is None


def test_answer_that_nobody_asked_for_is_an_error() -> None:
    """An answer to another step, or a second one, is a protocol error."""
    book = StepBook()
    book.begin(JOB)
    book.answer(2, done(20, b"zero", b"one"))
    for rank, job_id in ((2, 7), (3, 8)):
        with pytest.raises(ProtocolError, match="does not owe"):
            book.answer(rank, StepFailed(job_id, "late"))
