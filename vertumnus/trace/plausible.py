"""Cross-checks of what a config declares about a trace file: block size and unit of time.

Both are easy to get wrong and, unchecked, give a run that ends well and means nothing.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from vertumnus.domain.request import blocks_for
from vertumnus.domain.units import Nanoseconds, Tokens
from vertumnus.domain.wording import counted
from vertumnus.trace.formats.known import UNIT_NS, Unit
from vertumnus.trace.rows import TraceRow

OTHER: dict[Unit, Unit] = {"ms": "s", "s": "ms"}

LOWEST_RATE, HIGHEST_RATE = 0.01, 1_000.0
"""Mean rates that a trace of one service has [req/s]; ms and s are a factor of 1,000 apart."""
LONGEST_GAP: Nanoseconds = 600 * UNIT_NS["s"]
"""Median gap between stamps that one can have; 3 s ticks read as seconds are 50 min apart [ns]."""
ENOUGH_ROWS = 10
"""Below this many rows a mean rate says nothing about the unit."""


def unit_problem(stamps: Sequence[Nanoseconds], unit: Unit) -> str | None:
    """Return why *unit* cannot be that of *stamps* read with it, when the other one can; else None.

    The stamps ascend.
    """
    if len(stamps) < ENOUGH_ROWS or stamps[0] == stamps[-1]:
        return None
    others = [stamp * UNIT_NS[OTHER[unit]] // UNIT_NS[unit] for stamp in stamps]
    if _is_plausible(stamps) or not _is_plausible(others):
        return None
    return (
        f"workload.unit: found {unit}, must be {OTHER[unit]}: the {counted(len(stamps), 'row')} span "
        f"{duration(others[-1] - others[0])} as {OTHER[unit]}, {duration(stamps[-1] - stamps[0])} as {unit}"
    )


def block_problem(rows: Sequence[TraceRow], block_tokens: Tokens) -> str | None:
    """Return why *block_tokens* is not that of the first *rows*, and what fits; None if it may be.

    It is wrong when most rows break ceil(L / block_tokens) and one other size suits them all.
    """
    breaking = sum(not has_all_blocks(row, block_tokens) for row in rows)
    fitting = fitting_block_tokens(rows)
    if 2 * breaking <= len(rows) or fitting is None:
        return None
    return (
        f"workload.block_tokens: found {block_tokens}, but in {breaking} of the first "
        f"{counted(len(rows), 'row')} hash_ids are not ceil(input_length / {block_tokens}); "
        f"{fitting} would fit them all"
    )


def has_all_blocks(row: TraceRow, block_tokens: Tokens) -> bool:
    """Return whether *row* has one id for each block, a partial last one included."""
    return row.block_ids is None or len(row.block_ids) == blocks_for(row.input_tokens, block_tokens)


def fitting_block_tokens(rows: Sequence[TraceRow]) -> Tokens | None:
    """Return a block size that gives each of *rows* its number of ids, a power of two if one does.

    n = ceil(L / B) holds for ceil(L / n) <= B <= ceil(L / (n - 1)) - 1.
    """
    smallest, largest = 1, max((row.input_tokens for row in rows), default=1)
    for row in rows:
        if row.block_ids is None:
            continue
        blocks = len(row.block_ids)
        if blocks == 0:
            return None
        smallest = max(smallest, blocks_for(row.input_tokens, blocks))
        if blocks > 1:
            largest = min(largest, blocks_for(row.input_tokens, blocks - 1) - 1)
    power = 1 << (smallest - 1).bit_length()
    if power <= largest:
        return power
    return smallest if smallest <= largest else None


def duration(span_ns: Nanoseconds) -> str:
    """Return *span_ns* in the largest unit that it fills twice, for messages."""
    seconds = span_ns / UNIT_NS["s"]
    for name, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {name}"
    return f"{seconds:.3g} s"


def _is_plausible(stamps: Sequence[Nanoseconds]) -> bool:
    span_ns = stamps[-1] - stamps[0]
    rate = (len(stamps) - 1) * UNIT_NS["s"] / span_ns if span_ns else math.inf
    gap_ns = median(later - earlier for earlier, later in pairwise(dict.fromkeys(stamps)))
    return LOWEST_RATE <= rate <= HIGHEST_RATE and gap_ns <= LONGEST_GAP
