"""The one wire and log form of facts, orders and outcomes: msgpack arrays tagged by class name."""

from typing import NamedTuple, TypeAlias

import msgspec

from vertumnus.domain.facts import AnyFact
from vertumnus.domain.jobs import AnyOutcome
from vertumnus.domain.orders import AnyOrder

SCHEMA_VERSION = 1
"""Of the log's records; goes up when a field changes place or meaning."""

INPUT, FACT, ORDER = 0, 1, 2
"""Source of a record: the world through the engine, the fleet, or the control plane."""

Body: TypeAlias = AnyFact | AnyOrder | AnyOutcome


class Record(NamedTuple):
    """One line of the log: who said it, and what. Its number is its place in the log."""

    source: int
    body: Body


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Record])
_json = msgspec.json.Encoder()


def encode_batch(records: list[Record]) -> bytes:
    """Return *records* as one msgpack array."""
    return _encoder.encode(records)


def decode_batch(payload: bytes) -> list[Record]:
    """Return the records of a payload made by `encode_batch`.

    Raises msgspec.DecodeError or ValidationError on anything else.
    """
    return _decoder.decode(payload)


def to_json_line(record: Record) -> str:
    """Return *record* as one line of JSON, for people."""
    return _json.encode(record).decode()
