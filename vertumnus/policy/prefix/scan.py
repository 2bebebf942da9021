"""Algorithm 2: which blocks want a replica at which degree, and which replicas are not worth their room.

The lists are the published ones, read from the busy counters and the replicated blocks alone: a block
whose missed or access count is below its threshold cannot be in the first two, and the last copy of a
block is never reclaimed. So the lists cost what is hot and replicated, not what is known. Only a scan that
finds something to reclaim walks all that is known, once, for what builds on it (`reclamation`).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from vertumnus.domain.units import BlockKey, Blocks
from vertumnus.policy.prefix.demand import Busy, Demand
from vertumnus.policy.prefix.index import Node, PrefixIndex


class Candidate(NamedTuple):
    """A block at a degree, and what speaks for an operation."""

    key: BlockKey
    degree: int
    depth: Blocks
    replicas: int
    """r: workers of the degree that hold it."""
    demand: float
    """missed[z, C] [ns] for a first replica, access[z, C] otherwise."""


def inter_candidates(index: PrefixIndex, busy: Busy, degrees: Sequence[int]) -> list[Candidate]:
    """Return what degrees without a copy have missed above the bound (lines 4-6).

    Blocks that nobody holds are left out: there is nothing to copy.
    """
    found = []
    for key, degree, missed_ns in busy.missed:
        node = index.node(key)
        if degree not in degrees or node is None or not node.owners:
            continue
        if not index.replicas_at(degree, node.owners):
            found.append(Candidate(key, degree, node.depth, 0, missed_ns))
    return found


def intra_candidates(
    index: PrefixIndex, busy: Busy, degrees: Sequence[int], theta_intra: float
) -> list[Candidate]:
    """Return what the replicas of a degree are asked for above *theta_intra* each (lines 8-9)."""
    found = []
    for key, degree, access in busy.accessed:
        node = index.node(key)
        if degree in degrees and node is not None:
            replicas = index.replicas_at(degree, node.owners)
            if replicas and access > replicas * theta_intra:
                found.append(Candidate(key, degree, node.depth, replicas, access))
    return found


def reclaim_candidates(
    index: PrefixIndex,
    demand: Demand,
    replicated: Sequence[tuple[BlockKey, Node]],
    theta_reclaim: float,
    grace_scans: int,
    most: int,
) -> list[Candidate]:
    """Return what the replicas of a degree are asked for below *theta_reclaim* each (lines 10-11).

    Of the *replicated* blocks the *most* that are least asked for, the deepest first among equals. A block
    whose last copy was made less than *grace_scans* scans ago is too young to be judged.
    """
    latest = index.scan - grace_scans
    found = sorted(_little_asked(index, demand, replicated, theta_reclaim, latest))
    return [
        Candidate(key, degree, -rising, replicas, each * replicas)
        for each, rising, key, degree, replicas in found[:most]
    ]


def _little_asked(
    index: PrefixIndex,
    demand: Demand,
    replicated: Sequence[tuple[BlockKey, Node]],
    theta_reclaim: float,
    latest: int,
) -> Iterator[tuple[float, Blocks, BlockKey, int, int]]:
    """Yield (access per replica, -depth, block, degree, replicas) below the bound."""
    for key, node in replicated:
        if node.made > latest:
            continue
        for degree, replicas in index.replicas(node.owners):
            each = demand.access(key, degree) / replicas if key in demand else 0.0
            if each < theta_reclaim:
                yield each, -node.depth, key, degree, replicas
