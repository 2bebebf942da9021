"""Names for the numbers that the domain counts: integer nanoseconds, tokens, blocks and ids.

They are aliases, not wrapper types: decisions add and compare them millions of times a run.
Lengths are tokens unless a name says otherwise; durations and instants end in ``_ns``.
"""

from typing import TypeAlias

Nanoseconds: TypeAlias = int
Tokens: TypeAlias = int
Blocks: TypeAlias = int

RequestId: TypeAlias = int
"""Dense, in order of arrival, from 0; unique in a run."""

Rank: TypeAlias = int
"""One prefill GPU's process, 0..G-1; decode ranks count from 0 in their own pool."""

Epoch: TypeAlias = int
"""Version of a worker's geometry (sec. 6.2); a worker of the first composition has epoch 0."""

BlockKey: TypeAlias = int
"""A whole prefix that ends at a block boundary, interned to a dense integer at the edge."""

SlotId: TypeAlias = int
"""A block slot of the pool: ``rank * blocks_per_rank + slot on that rank``."""

JobId: TypeAlias = int

SECOND: Nanoseconds = 1_000_000_000

INT64 = range(-(2**63), 2**63)
"""What a log and a table can hold of whole numbers."""

LARGEST, LARGEST_S = 2.0**53, 1e9
"""No number that a run is given is larger, no time longer [s]: what becomes of them must be in `INT64`."""


def largest(key: str) -> float:
    """Return the magnitude that the number named *key*, as in a config, may have at most."""
    is_time = key.endswith("_s") and not key.endswith("_per_s")
    return LARGEST_S if is_time else LARGEST


def to_ns(seconds: float) -> Nanoseconds:
    """Return *seconds* as integer nanoseconds, rounded to the nearest."""
    return round(seconds * SECOND)


def to_seconds(nanoseconds: Nanoseconds) -> float:
    """Return *nanoseconds* in seconds, for configs, tables and screens only."""
    return nanoseconds / SECOND
