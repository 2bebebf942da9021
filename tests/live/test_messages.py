"""The control streams: what is said arrives as said; strangers, ghosts and gaps do not pass."""

from collections.abc import Iterator
from typing import get_args

import msgspec
import pytest
import zmq

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.jobs import StepWork
from vertumnus.live import messages
from vertumnus.live.control import ControlLink, Received, Switchboard
from vertumnus.live.messages import EnvelopeFromRank, EnvelopeToRank, Peer, Ping, Pong, Ready, Step, Stop

WAIT_MS = 10_000
LEFT, RIGHT = Peer("prefill", 0), Peer("prefill", 1)


@pytest.fixture
def board() -> Iterator[Switchboard]:
    """A coordinator that expects two ranks."""
    switchboard = Switchboard("secret")
    switchboard.expect(LEFT, 0)
    switchboard.expect(RIGHT, 0)
    yield switchboard
    switchboard.close()


def link_to(board: Switchboard, peer: Peer = LEFT, run: str = "secret", incarnation: int = 0) -> ControlLink:
    """Connect as *peer*."""
    return ControlLink(board.endpoint, run, peer, incarnation)


def hear(board: Switchboard, count: int) -> list[Received]:
    """Return the next *count* messages."""
    heard: list[Received] = []
    while len(heard) < count:
        assert board.socket.poll(WAIT_MS), "nothing arrived"
        heard += board.receive()
    return heard


def a_step() -> Step:
    """A step of one request of 20 tokens, 16 of them cached."""
    work = StepWork(3, 0, 20, 16, (0, 64))
    return Step(9, CpGroup(0, 2), 0, 1, (work,), (b"\x01\x00\x00\x00" * 4,))


def test_step_survives_the_wire() -> None:
    """What a rank reads is what the coordinator wrote, types included."""
    envelope = EnvelopeToRank("run", LEFT, 0, 5, a_step())
    assert messages.decode_to_rank(messages.encode(envelope)) == envelope


@pytest.mark.parametrize("direction", [messages.ToRank, messages.FromRank])
def test_tags_are_class_names(direction: object) -> None:
    """Each message is told apart by its class name, so no two of a direction collide."""
    names = [kind.__struct_config__.tag for kind in get_args(direction)]
    assert names == [kind.__name__ for kind in get_args(direction)]


@pytest.mark.parametrize(
    "frame", [b"", b"\xc1", msgspec.msgpack.encode(["run", ["prefill", 0, False], 0, 0, ["Nonsense"]])]
)
def test_garbage_is_a_protocol_error(frame: bytes) -> None:
    """Bytes that are no message raise ProtocolError, at either end."""
    for decode in (messages.decode_to_rank, messages.decode_from_rank):
        with pytest.raises(ProtocolError, match="not a message"):
            decode(frame)


def test_streams_keep_their_order(board: Switchboard) -> None:
    """A thousand messages each way arrive in the order in which they were sent."""
    link = link_to(board)
    for _ in range(1_000):
        link.send(Pong())
    assert {received.peer for received in hear(board, 1_000)} == {LEFT}
    for job_id in range(1_000):
        board.send(LEFT, Stop(job_id))
    answers = [link.receive(WAIT_MS) for _ in range(1_000)]
    assert answers == [Stop(job_id) for job_id in range(1_000)]
    link.close()


def test_strangers_are_dropped(board: Switchboard) -> None:
    """A frame without the run's secret, of another incarnation or unreadable changes nothing."""
    ghosts = [link_to(board, run="guess"), link_to(board, incarnation=1)]
    for ghost in ghosts:
        ghost.send(Ready())
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.connect(board.endpoint)
    socket.send(b"GET / HTTP/1.1")
    heard: list[Received] = []
    while board.strangers < 3:
        assert board.socket.poll(WAIT_MS), "nothing arrived"
        heard += board.receive()
    assert heard == []
    socket.close()
    context.term()
    for ghost in ghosts:
        ghost.close()


def test_gap_in_a_stream_is_an_error(board: Switchboard) -> None:
    """A missing message is not skipped: nobody could say what it had changed."""
    link = link_to(board)
    link._sent = 1  # as if message 0 had been lost
    link.send(Pong())
    assert board.socket.poll(WAIT_MS)
    with pytest.raises(ProtocolError, match="message 1 follows -1"):
        list(board.receive())
    link.close()


def test_rank_refuses_a_message_for_another(board: Switchboard) -> None:
    """A rank that finds another rank's message on its stream stops rather than carry it out."""
    link = link_to(board)
    link.send(Ready())
    hear(board, 1)
    frame = messages.encode(EnvelopeToRank("secret", RIGHT, 0, 0, Ping()))
    board.socket.send_multipart([b"prefill-0-0-0", frame])
    with pytest.raises(ProtocolError, match="for prefill rank 1"):
        link.receive(WAIT_MS)
    link.close()


def test_forgotten_peer_is_a_stranger(board: Switchboard) -> None:
    """What a lost rank had still under way is not taken for news, and nothing is sent to it."""
    link = link_to(board)
    link.send(Ready())
    hear(board, 1)
    board.forget(LEFT)
    board.send(LEFT, Ping())
    link.send(Pong())
    assert board.socket.poll(WAIT_MS)
    assert list(board.receive()) == []
    assert board.strangers == 1
    link.close()


def test_envelope_names_the_speaker() -> None:
    """Run, peer, incarnation and number come first, so a reader can judge before it reads the body."""
    frame = messages.encode(EnvelopeFromRank("run", RIGHT, 2, 7, Pong()))
    assert msgspec.msgpack.decode(frame)[:4] == ["run", ["prefill", 1, False], 2, 7]
