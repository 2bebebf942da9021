"""Copies under way: who is told what, and when a copy is over for good."""

import pytest

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.jobs import CopyJob
from vertumnus.live.copies import CopyBook, CopyResult
from vertumnus.live.messages import Copy, Peer
from vertumnus.live.posting import Posting

JOB = CopyJob(5, CpGroup(2, 2), ((0, 128), (1, 192), (64, 129), (195, 130)), ())
"""With 64 slots a rank: 0 to 2, 0 to 3, 1 to 2, 3 to 2."""


def a_book(*, by_transfer: bool) -> CopyBook:
    """A book of four ranks with 64 slots each."""
    return CopyBook(4, 64, by_transfer=by_transfer)


def told(rank: int, moves: list[tuple[int, int]], peers: list[tuple[int, int]]) -> Posting:
    """What the transfer thread of *rank* is told of `JOB`."""
    return Posting(Peer("prefill", rank, True), Copy(5, tuple(moves), tuple(peers)))


def test_shared_memory_needs_the_destinations_only() -> None:
    """Each destination reads its own blocks from wherever they lie."""
    book = a_book(by_transfer=False)
    assert book.participants(JOB) == [2, 3]
    assert book.begin(JOB) == [told(2, [(0, 128), (64, 129), (195, 130)], []), told(3, [(1, 192)], [])]


def test_both_ends_of_a_pair_know_the_same_moves() -> None:
    """A rank hears of what it takes and gives, in the job's order, and with whom under which generation."""
    book = a_book(by_transfer=True)
    assert book.participants(JOB) == [0, 1, 2, 3]
    assert book.begin(JOB) == [
        told(0, [(0, 128), (1, 192)], [(2, 0), (3, 0)]),
        told(1, [(64, 129)], [(2, 0)]),
        told(2, [(0, 128), (64, 129), (195, 130)], [(0, 0), (1, 0), (3, 0)]),
        told(3, [(1, 192), (195, 130)], [(0, 0), (2, 0)]),
    ]


def test_done_when_every_destination_has_confirmed() -> None:
    """The slowest one's time counts; sources are not asked."""
    book = a_book(by_transfer=True)
    book.begin(JOB)
    assert book.copied(5, 2, 300) is None
    assert len(book) == 1
    assert book.copied(5, 3, 200) == CopyResult(5, None, 4, 300)
    assert len(book) == 0


def test_failure_is_told_when_nobody_writes_any_more() -> None:
    """The slots go to others then, so the destination that still copies is waited for."""
    book = a_book(by_transfer=True)
    book.begin(JOB)
    assert book.failed(5, 2, "connection closed") is None
    result = book.copied(5, 3, 200)
    assert result is not None and result.failure == "prefill rank 2: connection closed"
    assert book.failed(5, 0, "late") is None


def test_failed_pairs_meet_anew() -> None:
    """The next copy between ranks of a failed one uses the next generation, any other pair the first."""
    book = a_book(by_transfer=True)
    book.begin(JOB)
    book.failed(5, 2, "timed out")
    book.failed(5, 3, "timed out")
    again = CopyJob(6, CpGroup(3, 1), ((0, 192), (64, 193)), ())
    assert [posting.body for posting in book.begin(again)] == [
        Copy(6, ((0, 192),), ((3, 1),)),
        Copy(6, ((64, 193),), ((3, 0),)),
        Copy(6, ((0, 192), (64, 193)), ((0, 1), (1, 0))),
    ]


def test_a_source_that_fails_to_send_what_arrived() -> None:
    """What every destination confirms is done, but the pairs meet anew."""
    book = a_book(by_transfer=True)
    book.begin(JOB)
    assert book.failed(5, 0, "connection closed") is None
    book.copied(5, 2, 300)
    assert book.copied(5, 3, 200) == CopyResult(5, None, 4, 300)
    assert book.begin(JOB)[0] == told(0, [(0, 128), (1, 192)], [(2, 1), (3, 1)])


def test_a_lost_destination_ends_the_copy_after_the_others() -> None:
    """It confirms nothing any more; told once, when the other destination is out of it as well."""
    book = a_book(by_transfer=False)
    book.begin(JOB)
    assert list(book.lose(3, "killed")) == []
    result = book.copied(5, 2, 300)
    assert result is not None and result.failure == "prefill rank 3 lost: killed"
    assert list(book.lose(2, "killed")) == []


def test_a_lost_source_shows_at_its_destinations() -> None:
    """By messages they report it; in shared memory its blocks are as good as before."""
    book = a_book(by_transfer=True)
    book.begin(JOB)
    assert list(book.lose(0, "killed")) == []
    book.failed(5, 2, "closed")
    result = book.failed(5, 3, "closed")
    assert result is not None
    assert result.failure == "prefill rank 0 lost: killed; prefill rank 2: closed; prefill rank 3: closed"
    shared = a_book(by_transfer=False)
    shared.begin(JOB)
    assert list(shared.lose(0, "killed")) == []
    shared.copied(5, 2, 300)
    assert shared.copied(5, 3, 200) == CopyResult(5, None, 4, 300)


@pytest.mark.parametrize("moves", [(), ((0, 64),), ((256, 128),), ((-1, 128),), ((0, 128), (0, 256))])
def test_moves_that_cannot_be_are_refused(moves: tuple[tuple[int, int], ...]) -> None:
    """None at all, a destination outside the worker, a source outside the pool."""
    book = a_book(by_transfer=True)
    with pytest.raises(ProtocolError, match="copy 6"):
        book.participants(CopyJob(6, CpGroup(2, 2), moves, ()))


def test_a_confirmation_that_nobody_waits_for_is_an_error() -> None:
    """A second one, or one of a rank that takes nothing."""
    book = a_book(by_transfer=True)
    book.begin(JOB)
    book.copied(5, 2, 300)
    for rank in (0, 2):
        with pytest.raises(ProtocolError, match="does not owe"):
            book.copied(5, rank, 300)
