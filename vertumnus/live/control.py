"""One ordered control stream per peer: a ROUTER at the coordinator, a DEALER at each peer.

Rules: what a stream carries is numbered; a gap or another process's number is an error, never skipped.
A frame that does not carry the run's secret comes from a stranger and is dropped.
Both ends bind and connect to the loopback interface only.
"""

from collections.abc import Iterator
from typing import NamedTuple

import zmq

from vertumnus.domain.errors import ProtocolError
from vertumnus.live.messages import (
    EnvelopeFromRank,
    EnvelopeToRank,
    FromRank,
    Peer,
    ToRank,
    decode_from_rank,
    decode_to_rank,
    encode,
)

LOOPBACK = "127.0.0.1"


class Received(NamedTuple):
    """A message and the peer that sent it."""

    peer: Peer
    body: FromRank


class Switchboard:
    """The coordinator's end of every stream."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.set_hwm(0)  # the fleet bounds what is under way; dropping would break the stream
        port = self._socket.bind_to_random_port(f"tcp://{LOOPBACK}")
        self.endpoint = f"tcp://{LOOPBACK}:{port}"
        self._sent: dict[Peer, int] = {}
        self._heard: dict[Peer, int] = {}
        self._incarnations: dict[Peer, int] = {}
        self.strangers = 0
        """Frames that were dropped because they were not part of this run."""

    @property
    def socket(self) -> "zmq.Socket[bytes]":
        """What a poller waits on."""
        return self._socket

    def expect(self, peer: Peer, incarnation: int) -> None:
        """Accept *peer*'s messages from now on, of this incarnation only."""
        self._incarnations[peer] = incarnation
        self._sent[peer] = self._heard[peer] = 0

    def forget(self, peer: Peer) -> None:
        """Drop whatever a lost peer may still have on the way."""
        self._incarnations.pop(peer, None)

    def send(self, peer: Peer, body: ToRank) -> None:
        """Put *body* on *peer*'s stream; to a forgotten peer it goes nowhere."""
        incarnation = self._incarnations.get(peer)
        if incarnation is None:
            return
        envelope = EnvelopeToRank(self._run, peer, incarnation, self._sent[peer], body)
        self._sent[peer] += 1
        self._socket.send_multipart([_identity(peer, incarnation), encode(envelope)])

    def receive(self) -> Iterator[Received]:
        """Yield what has arrived, without waiting.

        Raises ProtocolError when a known peer's stream has a gap.
        """
        while self._socket.poll(0):
            received = self._accept(self._socket.recv_multipart()[-1])
            if received is not None:
                yield received

    def close(self) -> None:
        """Close the socket; safe to call twice."""
        self._socket.close()
        self._context.term()

    def _accept(self, frame: bytes) -> Received | None:
        envelope = self._open(frame)
        if envelope is None:
            return None
        peer = envelope.peer
        if envelope.seq != self._heard[peer]:
            raise ProtocolError(f"{peer}: message {envelope.seq} follows {self._heard[peer] - 1}")
        self._heard[peer] += 1
        return Received(peer, envelope.body)

    def _open(self, frame: bytes) -> EnvelopeFromRank | None:
        """Return the envelope, or None when its sender has no part in this run."""
        try:
            envelope = decode_from_rank(frame)
        except ProtocolError:
            self.strangers += 1
            return None
        if envelope.run != self._run or self._incarnations.get(envelope.peer) != envelope.incarnation:
            self.strangers += 1
            return None
        return envelope


class ControlLink:
    """A peer's end of its stream. Use it from one thread."""

    def __init__(self, endpoint: str, run: str, peer: Peer, incarnation: int) -> None:
        self.peer = peer
        self._run = run
        self._incarnation = incarnation
        self._sent = self._heard = 0
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 1_000)  # [ms] for a last StepFailed; a dead coordinator is left
        self._socket.setsockopt(zmq.IDENTITY, _identity(peer, incarnation))
        self._socket.set_hwm(0)
        self._socket.connect(endpoint)

    def send(self, body: FromRank) -> None:
        """Put *body* on the stream to the coordinator."""
        envelope = EnvelopeFromRank(self._run, self.peer, self._incarnation, self._sent, body)
        self._sent += 1
        self._socket.send(encode(envelope))

    def receive(self, wait_ms: int) -> ToRank | None:
        """Return the next message, or None when none came within *wait_ms*.

        Raises ProtocolError when the stream has a gap or carries another process's messages.
        """
        if not self._socket.poll(wait_ms):
            return None
        envelope = decode_to_rank(self._socket.recv())
        mine = (self._run, self.peer, self._incarnation, self._heard)
        if (envelope.run, envelope.peer, envelope.incarnation, envelope.seq) != mine:
            raise ProtocolError(
                f"{self.peer}: expected message {self._heard} of incarnation {self._incarnation}, "
                f"got message {envelope.seq} of incarnation {envelope.incarnation} for {envelope.peer}"
            )
        self._heard += 1
        return envelope.body

    def close(self) -> None:
        """Close the socket after what was sent has left."""
        self._socket.close()
        self._context.term()


def _identity(peer: Peer, incarnation: int) -> bytes:
    return f"{peer.pool}-{peer.rank}-{int(peer.transfers)}-{incarnation}".encode()
