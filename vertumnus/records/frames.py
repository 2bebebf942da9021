"""Frames of a log: length (u32), CRC-32 of the payload (u32), payload; little-endian.

One rule for bytes that are no whole frame. With nothing whole after them they are the *torn* end of a log
whose writer was killed, which is normal. With whole frames after them the log is *damaged*: whoever went on
would read fewer records than were told, or some out of their order.
"""

import os
import re
import struct
import zlib
from typing import BinaryIO

_HEAD = struct.Struct("<II")

_MAY_BEGIN = re.compile(rb"(?s)(?=.{8}(?:[\x91-\x9f]|\xdc..)\x92[\x00-\x02])")
"""Eight bytes before a msgpack array whose first item is a pair of a source and something."""


class TornFrame(Exception):
    """The file ends with bytes that are no whole frame."""


class DamagedFrame(Exception):
    """Bytes that are no whole frame, although whole ones follow."""


def frame(payload: bytes) -> bytes:
    """Return *payload* with its length and its checksum."""
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


def read_frame(file: BinaryIO) -> bytes | None:
    """Return the next payload, None at the end of the file; raises TornFrame or DamagedFrame."""
    begins = file.tell()
    left = os.fstat(file.fileno()).st_size - begins
    head = file.read(_HEAD.size)
    if not head:
        return None
    length, checksum = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, None)
    if length and length + _HEAD.size <= left:  # before reading: a damaged length may ask for 4 GiB
        payload = file.read(length)
        if zlib.crc32(payload) == checksum:
            return payload
    file.seek(begins + 1)
    if _has_whole_batch(
        file.read(max(0, left - 1))
    ):  # no more than was there: its writer may have gone on since
        raise DamagedFrame
    raise TornFrame


def _has_whole_batch(rest: bytes) -> bool:
    return any(_is_whole(rest, begins.start()) for begins in _MAY_BEGIN.finditer(rest))


def _is_whole(rest: bytes, begins: int) -> bool:
    length, checksum = _HEAD.unpack_from(rest, begins)
    payload = rest[begins + _HEAD.size : begins + _HEAD.size + length]
    is_as_told: bool = zlib.crc32(payload) == checksum
    return is_as_told and len(payload) == length
