"""One request of a trace as its file or generator tells it, whatever the format."""

from typing import NamedTuple

from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import Nanoseconds, Tokens


class TraceRow(NamedTuple):
    """Lengths, arrival and prefix identity of one request; rows of a trace ascend in arrival."""

    arrival_ns: Nanoseconds
    """From an origin of the trace's own [ns]."""
    input_tokens: Tokens
    """L >= 1."""
    output_tokens: Tokens
    """>= 1."""
    block_ids: tuple[int, ...] | None
    """One id per block, root first, a partial last block included; None: content unknown."""
    session: str | None = None
    """Which conversation this is a turn of, as the trace names it; None: not told."""
    follows: str | None = None
    """The session whose latest turn this one continues: its own, or the one that it branched from."""
    pause_ns: Nanoseconds | None = None
    """From the end of the answer before it; None: not told [ns]."""


def shrink(row: TraceRow, divisor: int) -> TraceRow:
    """Return *row* with lengths divided by *divisor*, rounded up; arrival and ids stay.

    Rounding up keeps the number of blocks: ceil(ceil(L / k) / (B / k)) = ceil(L / B).
    """
    return row._replace(
        input_tokens=blocks_for(row.input_tokens, divisor),
        output_tokens=blocks_for(row.output_tokens, divisor),
    )
