"""Taking out of rows what could be tested against known texts: ids and sessions become keyed hashes.

Whoever does not have the salt cannot tell whether a text that they know is among the prompts, and two
traces under two salts share nothing. Under one salt equal prefixes stay equal, across files, too.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from vertumnus.trace.rows import TraceRow

SALT_BYTES = 32
_ID_BYTES = 8
_ID_MASK = 2**63 - 1


def since_first(rows: Iterable[TraceRow]) -> Iterator[TraceRow]:
    """Yield *rows* with times counted from the first one, so that no date is left."""
    start_ns = None
    for row in rows:
        start_ns = row.arrival_ns if start_ns is None else start_ns
        yield row._replace(arrival_ns=row.arrival_ns - start_ns)


def salted(rows: Iterable[TraceRow], salt: bytes) -> Iterator[TraceRow]:
    """Yield *rows* with ids and sessions hashed under *salt*."""
    for row in rows:
        yield row._replace(
            block_ids=None if row.block_ids is None else tuple(_id(salt, each) for each in row.block_ids),
            session=_session(salt, row.session),
            follows=_session(salt, row.follows),
        )


def _id(salt: bytes, block_id: int) -> int:
    return int.from_bytes(_hashed(salt, b"block %d" % block_id), "little") & _ID_MASK


def _session(salt: bytes, session: str | None) -> str | None:
    return None if session is None else _hashed(salt, b"session " + session.encode()).hex()


def _hashed(salt: bytes, content: bytes) -> bytes:
    return blake2b(content, key=salt, digest_size=_ID_BYTES).digest()
