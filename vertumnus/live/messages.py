"""What coordinator and ranks say to each other: tagged msgpack structs, never pickle (docs: protocol).

Each message travels in an Envelope that names the run, the speaker or addressee, its incarnation and
a sequence number, so that strangers, ghosts of a restarted rank and gaps are told from the stream.
Token ids travel as little-endian int32 bytes, hidden states as the model's own bytes.
"""

from typing import Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.jobs import StepWork
from vertumnus.domain.units import Epoch, JobId, Nanoseconds, Rank, SlotId, Tokens
from vertumnus.live.plan import LivePlan

Pool: TypeAlias = Literal["prefill", "decode"]

PROTOCOL_VERSION = 3
"""Goes up when a message changes; a rank that speaks another version is refused."""


class Peer(NamedTuple):
    """One end of a control stream: a rank's main loop, or its transfer thread."""

    pool: Pool
    rank: Rank
    transfers: bool = False
    """Whether this is the stream of the rank's transfer thread."""

    @property
    def process(self) -> "Peer":
        """The main loop of the same process."""
        return Peer(self.pool, self.rank)

    def __str__(self) -> str:
        return f"{self.pool} rank {self.rank}" + (" (transfers)" if self.transfers else "")


class Message(Struct, frozen=True, array_like=True, tag=True):
    """Base of the messages."""


class Welcome(Message, frozen=True, array_like=True, tag=True):
    """First answer to Register: everything that a rank needs to build its part."""

    plan: LivePlan
    worker: CpGroup | None
    """The worker that this prefill rank belongs to; None on a decode rank."""
    epoch: Epoch
    store_port: int
    """TCPStore of the coordinator, for rendezvous only."""
    kv_fds: tuple[int, ...]
    """Open file behind the KV map of each prefill rank, by rank; empty when pairwise."""


class Step(Message, frozen=True, array_like=True, tag=True):
    """Prefill these works together; every rank of the worker gets the same one."""

    job_id: JobId
    worker: CpGroup
    epoch: Epoch
    generation: int
    """Of the worker's process group: one more after each failed collective."""
    works: tuple[StepWork, ...]
    tokens: tuple[bytes, ...]
    """Uncached token ids of each work, int32."""


class Adopt(Message, frozen=True, array_like=True, tag=True):
    """The versioned control record (sec. 8): from the next message on you are one of this worker.

    It travels in the stream of the steps, so that no step runs half before and half after it.
    """

    job_id: JobId
    worker: CpGroup
    epoch: Epoch


class Admit(Message, frozen=True, array_like=True, tag=True):
    """Take the prompt's KV, report HandoffDone, then decode."""

    job_id: JobId
    input_tokens: Tokens
    output_tokens: Tokens
    slots: tuple[SlotId, ...]
    final_hidden: bytes
    """Hidden state at position L - 1, from which token 1 is computed."""


class Stop(Message, frozen=True, array_like=True, tag=True):
    """Abandon the decoding of a job; its Ended follows unless it has been sent already."""

    job_id: JobId


class Send(Message, frozen=True, array_like=True, tag=True):
    """To a prefill rank's transfer thread: send these own slots, in order, to a decode rank."""

    job_id: JobId
    decode_rank: Rank
    generation: int
    """Of the pair's process group: one more after each failed transfer."""
    slots: tuple[SlotId, ...]


class Receive(Message, frozen=True, array_like=True, tag=True):
    """To a decode rank's transfer thread: receive a prompt's blocks from every owner."""

    job_id: JobId
    sends: tuple[tuple[Rank, int], ...]
    """Each owner and its pair's generation, in the order in which they are received."""
    slots: tuple[SlotId, ...]


class Copy(Message, frozen=True, array_like=True, tag=True):
    """To a prefill rank's transfer thread: take these blocks, and send those that others take from you."""

    job_id: JobId
    moves: tuple[tuple[SlotId, SlotId], ...]
    """(source, destination): every move that this rank has a part in, in the order of the job."""
    peers: tuple[tuple[Rank, int], ...]
    """Each rank at the other end of a move, ascending, and its pair's generation; none when shared."""


class Inspect(Message, frozen=True, array_like=True, tag=True):
    """To a prefill rank's transfer thread: tell what lies in these own slots. Answered by Inspected."""

    slots: tuple[SlotId, ...]


class Ping(Message, frozen=True, array_like=True, tag=True):
    """Are you there? Answered by Pong."""


class Shutdown(Message, frozen=True, array_like=True, tag=True):
    """Leave your loop and exit with status 0."""


class Register(Message, frozen=True, array_like=True, tag=True):
    """First message of a stream."""

    protocol: int
    pid: int


class Ready(Message, frozen=True, array_like=True, tag=True):
    """Weights loaded, KV mapped, groups built and warmed."""


class StepDone(Message, frozen=True, array_like=True, tag=True):
    """This rank's part of a step is done and its KV is in place."""

    job_id: JobId
    compute_ns: Nanoseconds
    cpu_ns: Nanoseconds
    """CPU time that this rank spent on the step; robust on a shared machine."""
    final_hidden: tuple[bytes | None, ...]
    """For each work: the hidden state at L - 1 where this rank computed it."""


class StepFailed(Message, frozen=True, array_like=True, tag=True):
    """This rank could not finish a step."""

    job_id: JobId
    reason: str


class Adopted(Message, frozen=True, array_like=True, tag=True):
    """This rank runs the worker and epoch of the Adopt."""

    job_id: JobId


class TransferDone(Message, frozen=True, array_like=True, tag=True):
    """From the receiving end: every block of the prompt has arrived."""

    job_id: JobId


class TransferFailed(Message, frozen=True, array_like=True, tag=True):
    """From either end: the transfer or copy broke; the pairs' groups are dead, and nothing arrives late."""

    job_id: JobId
    reason: str


class Copied(Message, frozen=True, array_like=True, tag=True):
    """Every block of a Copy that this rank takes lies in its slot."""

    job_id: JobId
    wire_ns: Nanoseconds
    """From the first block asked for to the last one there, on this rank."""


class Inspected(Message, frozen=True, array_like=True, tag=True):
    """The digest of each slot of an Inspect, in its order."""

    digests: tuple[bytes, ...]


class HandoffDone(Message, frozen=True, array_like=True, tag=True):
    """The decode rank has its own copy of the prompt's KV."""

    job_id: JobId


class Decoded(Message, frozen=True, array_like=True, tag=True):
    """One token for each sequence of a decode step."""

    job_ids: tuple[JobId, ...]
    tokens: tuple[int, ...]


class Ended(Message, frozen=True, array_like=True, tag=True):
    """A sequence left the batch, complete or stopped, after this many tokens."""

    job_id: JobId
    output_tokens: Tokens


class HandoffFailed(Message, frozen=True, array_like=True, tag=True):
    """The decode rank could not take or continue a sequence."""

    job_id: JobId
    reason: str


class Pong(Message, frozen=True, array_like=True, tag=True):
    """I am here, between two pieces of work."""


ToRank: TypeAlias = Welcome | Step | Adopt | Admit | Stop | Send | Receive | Copy | Inspect | Ping | Shutdown
FromRank: TypeAlias = (
    Register
    | Ready
    | StepDone
    | StepFailed
    | Adopted
    | TransferDone
    | TransferFailed
    | Copied
    | Inspected
    | HandoffDone
    | HandoffFailed
    | Decoded
    | Ended
    | Pong
)


class EnvelopeToRank(Struct, frozen=True, array_like=True):
    """What a rank may find on its stream."""

    run: str
    """The run's secret: only processes that the coordinator started know it."""
    peer: Peer
    incarnation: int
    """Of the rank's process, 0 at first."""
    seq: int
    """Number of this message on the stream, from 0."""
    body: ToRank


class EnvelopeFromRank(Struct, frozen=True, array_like=True):
    """What the coordinator may find on a rank's stream."""

    run: str
    peer: Peer
    incarnation: int
    seq: int
    body: FromRank


Envelope = TypeVar("Envelope", EnvelopeToRank, EnvelopeFromRank)

_encoder = msgspec.msgpack.Encoder()
_to_rank = msgspec.msgpack.Decoder(EnvelopeToRank)
_from_rank = msgspec.msgpack.Decoder(EnvelopeFromRank)


def encode(envelope: EnvelopeToRank | EnvelopeFromRank) -> bytes:
    """Return the wire form of *envelope*."""
    return _encoder.encode(envelope)


def decode_to_rank(frame: bytes) -> EnvelopeToRank:
    """Return the envelope in *frame*. Raises ProtocolError when it is none."""
    return _decode(_to_rank, frame)


def decode_from_rank(frame: bytes) -> EnvelopeFromRank:
    """Return the envelope in *frame*. Raises ProtocolError when it is none."""
    return _decode(_from_rank, frame)


def _decode(decoder: "msgspec.msgpack.Decoder[Envelope]", frame: bytes) -> Envelope:
    try:
        return decoder.decode(frame)
    except msgspec.DecodeError as error:  # ValidationError included
        raise ProtocolError(f"not a message of this protocol: {error}") from error
