"""Messages of the action socket, version 1: one JSON object a line, told apart by "type".

    console                                                     run
    {"type":"hello","version":1,"who":"ann","reads_only":false}
                      {"type":"welcome","version":1,"run_id":"01…","actions":["split",…],"speed":20.0}
    {"type":"act","number":1,"action":"merge","workers":[[0,2],[2,2]]}
                      {"type":"answered","number":1,"action_id":7,"accepted":true,"reason":""}

A console says hello once, then acts as often as it likes; every act is answered, in the order in which the
control plane took them. A worker is [first rank, degree]. What cannot be understood is answered by "bye"
with the reason, and the connection is closed.
"""

from typing import TypeAlias

import msgspec
from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.facts import Action
from vertumnus.domain.units import INT64

VERSION = 1
"""Goes up when a message changes its meaning; a console of another version is turned away."""
LONGEST_LINE = 65_536
"""Bytes of a message at most."""
LONGEST_NAME = 64
"""Characters of an operator's name at most."""


class Message(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type", tag=str.lower):
    """Base of the messages."""


class Hello(Message, frozen=True, kw_only=True):
    """A console's first message."""

    version: int
    who: str
    """Stands in the run's log beside every action."""
    reads_only: bool = False
    """Whether to refuse this connection every action, whatever it sends."""


class Act(Message, frozen=True, kw_only=True):
    """A wish; the fields are those of the fact `OperatorActed`."""

    number: int
    """The console's own number of it, given back with the answer."""
    action: Action
    workers: tuple[CpGroup, ...] = ()
    setting: str = ""
    value: int | float | str | None = None


class Welcome(Message, frozen=True, kw_only=True):
    """The run's answer to hello."""

    version: int = VERSION
    run_id: str
    actions: tuple[Action, ...]
    """What this connection may ask for; empty when it is read-only."""
    speed: float | None
    """Virtual seconds a second of a paced run; None for one that is executed."""


class Answered(Message, frozen=True, kw_only=True):
    """What became of an act."""

    number: int
    action_id: int | None
    """Of the fact and the order in the log; None when it never got there."""
    accepted: bool
    reason: str
    """Why it is refused, or what it changed."""


class Bye(Message, frozen=True, kw_only=True):
    """The run's last message on a connection."""

    reason: str


FromConsole: TypeAlias = Hello | Act
FromRun: TypeAlias = Welcome | Answered | Bye


def beyond_the_log(act: Act) -> str:
    """Return why no log can hold what *act* names; "" when one can.

    JSON has whole numbers of any size; the fact made of an act has those of `INT64`.
    """
    named = [number for worker in act.workers for number in worker]
    if isinstance(act.value, int):
        named.append(act.value)
    odd = next((number for number in named if number not in INT64), None)
    return "" if odd is None else f"{act.action}: found {odd}, whole numbers must be within +-2^63"


class Lines:
    """Cuts a stream of bytes into messages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, received: bytes) -> list[bytes]:
        """Return the lines that *received* completes. Raises ValueError for one that is too long."""
        *lines, self._rest = (self._rest + received).split(b"\n")
        if any(len(line) > LONGEST_LINE for line in (*lines, self._rest)):
            raise ValueError(f"a message is longer than {LONGEST_LINE} bytes")
        return [line for line in lines if line.strip()]


def encode(message: FromConsole | FromRun) -> bytes:
    """Return *message* as its line."""
    return msgspec.json.encode(message) + b"\n"


def from_console(line: bytes) -> FromConsole:
    """Return a console's message. Raises msgspec.MsgspecError when it is none."""
    return _from_console.decode(line)


def from_run(line: bytes) -> FromRun:
    """Return a run's message. Raises msgspec.MsgspecError when it is none."""
    return _from_run.decode(line)


_from_console: msgspec.json.Decoder[FromConsole] = msgspec.json.Decoder(FromConsole)
_from_run: msgspec.json.Decoder[FromRun] = msgspec.json.Decoder(FromRun)
