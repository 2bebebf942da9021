"""What a sweep and the process of one of its jobs tell each other, a line of JSON each."""

from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from vertumnus.sweep.job import Ending


class Assignment(Struct, frozen=True, kw_only=True):
    """What the process is to run; all that it is told. When its stdin ends, it ends too."""

    config: dict[str, Any]
    runs_dir: str
    words: tuple[str, ...]
    sweep: str
    code_hash: str
    """Of the code that the sweep began with."""


class Progressed(Struct, frozen=True, tag=True):
    """How far the run is."""

    done: int
    planned: int


class Said(Struct, frozen=True, tag=True):
    """A line for people."""

    line: str


class Ended(Struct, frozen=True, tag=True):
    """The last message."""

    ending: Ending


Message: TypeAlias = Progressed | Said | Ended

_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def to_line(message: Message | Assignment) -> bytes:
    """Return *message* as one line."""
    return msgspec.json.encode(message) + b"\n"


def read_message(line: bytes) -> Message | None:
    """Return the message in *line*; None when it is none."""
    try:
        return _decoder.decode(line)
    except msgspec.MsgspecError:
        return None


def read_assignment(line: bytes) -> Assignment:
    """Return the assignment in *line*; raises msgspec.MsgspecError."""
    return msgspec.json.decode(line, type=Assignment)
