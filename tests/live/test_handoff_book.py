"""Hand-offs under way: who is told what, in which order, when blocks are shared and when they are sent."""

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.jobs import HandoffJob
from vertumnus.live.handoffs import HandoffBook
from vertumnus.live.messages import Admit, Peer, Receive, Send, Stop
from vertumnus.live.posting import Posting

DECODE = Peer("decode", 1)
JOB = HandoffJob(5, 0, 0, CpGroup(0, 2), 1, 40, 8, (0, 64, 1))
"""Three blocks: slots 0 and 1 of rank 0, slot 0 of rank 1, with 64 slots a rank."""
ADMIT = Posting(DECODE, Admit(5, 40, 8, (0, 64, 1), b"state"))


def a_book(*, by_transfer: bool) -> HandoffBook:
    """A book of ranks with 64 slots."""
    return HandoffBook(64, by_transfer=by_transfer)


def test_shared_blocks_are_admitted_at_once() -> None:
    """The decode rank reads the blocks itself, so it is the only one that is told."""
    assert a_book(by_transfer=False).begin(JOB, b"state") == [ADMIT]


def test_receive_is_told_before_the_sends() -> None:
    """Each owner sends its own slots in the prompt's order; the prompt is admitted when all are there."""
    book = a_book(by_transfer=True)
    assert book.begin(JOB, b"state") == [
        Posting(Peer("decode", 1, True), Receive(5, ((0, 0), (1, 0)), (0, 64, 1))),
        Posting(Peer("prefill", 0, True), Send(5, 1, 0, (0, 1))),
        Posting(Peer("prefill", 1, True), Send(5, 1, 0, (64,))),
    ]
    assert book.arrived(5, DECODE) == [ADMIT]


def test_stop_follows_the_admit() -> None:
    """A stop that comes while blocks move waits, so that the decode rank knows what it is about."""
    book = a_book(by_transfer=True)
    book.begin(JOB, b"state")
    assert book.stop(5) == []
    assert book.arrived(5, DECODE) == [ADMIT, Posting(DECODE, Stop(5))]


def test_broken_transfer_gives_its_pairs_new_groups() -> None:
    """After a failure the next transfer of the same pairs meets under the next generation."""
    book = a_book(by_transfer=True)
    book.begin(JOB, b"state")
    assert book.end(5) is not None
    receive = book.begin(JOB, b"state")[0].body
    assert isinstance(receive, Receive) and receive.sends == ((0, 1), (1, 1))


def test_finished_handoff_leaves_its_pairs_alone() -> None:
    """A hand-off that ends after its blocks arrived says nothing about the groups."""
    book = a_book(by_transfer=True)
    book.begin(JOB, b"state")
    book.arrived(5, DECODE)
    book.end(5)
    receive = book.begin(JOB, b"state")[0].body
    assert isinstance(receive, Receive) and receive.sends == ((0, 0), (1, 0))


def test_a_transfer_that_breaks_ends_its_handoff() -> None:
    """At either end, once; its pairs meet in new groups."""
    for peer in (Peer("prefill", 1, True), Peer("decode", 1, True)):
        book = a_book(by_transfer=True)
        book.begin(JOB, b"state")
        assert book.transfer_failed(5, peer) is not None
        assert book.transfer_failed(5, peer) is None and len(book) == 0
        receive = book.begin(JOB, b"state")[0].body
        assert isinstance(receive, Receive) and receive.sends == ((0, 1), (1, 1))


def test_trouble_of_an_owner_after_the_blocks_arrived_ends_nothing() -> None:
    """The sequence is decoded on; to end it here would leave it at its decode rank, which nobody stops.

    The owner's group is dead all the same.
    """
    book = a_book(by_transfer=True)
    book.begin(JOB, b"state")
    book.arrived(5, DECODE)
    assert book.transfer_failed(5, Peer("prefill", 1, True)) is None
    assert book.find(5) is not None
    book.end(5)
    receive = book.begin(JOB, b"state")[0].body
    assert isinstance(receive, Receive) and receive.sends == ((0, 0), (1, 1))


def test_blocks_of_a_dead_handoff_are_dropped() -> None:
    """Blocks that arrive after their hand-off ended are not kept for ever."""
    book = a_book(by_transfer=True)
    book.begin(JOB, b"state")
    book.end(5)
    assert book.arrived(5, Peer("decode", 1, True)) == [Posting(DECODE, Stop(5))]


def test_who_a_loss_hits() -> None:
    """A decode rank takes its sequences with it, an owner only what has not left it."""
    book = a_book(by_transfer=True)
    book.begin(JOB, b"state")
    assert book.hit_by_loss(Peer("prefill", 1)) == [5]
    assert book.hit_by_loss(Peer("prefill", 2)) == []
    book.arrived(5, DECODE)
    assert book.hit_by_loss(Peer("prefill", 1)) == []
    assert book.hit_by_loss(DECODE) == [5]


def test_shared_memory_outlives_its_rank() -> None:
    """A prompt in a map is handed off although the rank that computed it is gone."""
    book = a_book(by_transfer=False)
    book.begin(JOB, b"state")
    assert book.hit_by_loss(Peer("prefill", 0)) == []


def test_late_wishes_change_nothing() -> None:
    """A stop for, or a second end of, a hand-off that is over does nothing."""
    book = a_book(by_transfer=False)
    book.begin(JOB, b"state")
    assert book.end(5) is not None
    assert book.end(5) is None
    assert book.stop(5) == []
    assert len(book) == 0
