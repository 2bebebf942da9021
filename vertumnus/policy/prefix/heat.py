"""What a scan saw of the trie, for log, tables and console: demand and copies by degree, hottest blocks."""

from collections.abc import Sequence
from heapq import nlargest
from operator import itemgetter
from typing import NamedTuple

from vertumnus.domain.orders import DegreeHeat, HotBlock, NoteScan
from vertumnus.domain.units import BlockKey
from vertumnus.policy.prefix.demand import Busy, Demand
from vertumnus.policy.prefix.index import PrefixIndex

HOTTEST = 8
"""Blocks that are noted for each degree and kind of demand."""


class Chosen(NamedTuple):
    """What the manager made of a scan [operations]."""

    inter: int = 0
    intra: int = 0
    reclaimed_blocks: int = 0
    unfinished: int = 0
    """Replications of the scan before that were not complete."""


def note_scan(
    index: PrefixIndex, demand: Demand, busy: Busy, degrees: Sequence[int], chosen: Chosen
) -> NoteScan:
    """Return the note of a scan, its counters before they decay."""
    copies = index.copies()
    heat = tuple(
        DegreeHeat(
            degree, copies.get(degree, 0), demand.total_access(degree), round(demand.total_missed_ns(degree))
        )
        for degree in degrees
    )
    hottest = tuple(_hot_block(index, demand, *block) for block in _hottest(busy, degrees))
    return NoteScan(demand.scan, len(index), heat, hottest, *chosen)


def _hottest(busy: Busy, degrees: Sequence[int]) -> list[tuple[int, BlockKey]]:
    """Return (degree, block) of the most accessed and the most missed of each degree, ascending."""
    found: dict[tuple[int, BlockKey], None] = {}
    for demands in busy:
        for degree in degrees:
            here = (item for item in demands if item[1] == degree)
            found |= {(degree, key): None for key, _, _ in nlargest(HOTTEST, here, key=itemgetter(2))}
    return sorted(found)


def _hot_block(index: PrefixIndex, demand: Demand, degree: int, key: BlockKey) -> HotBlock:
    node = index.node(key)
    return HotBlock(
        degree,
        key,
        0 if node is None else node.depth,
        index.replica_count(key, degree),
        demand.access(key, degree),
        round(demand.missed_ns(key, degree)),
    )
