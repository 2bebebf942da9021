"""Algorithm 2: which blocks want a replica at which degree, and which replicas are not worth their room.

The lists are the published ones, read from the busy counters and the replicated blocks alone: a block
whose missed or access count is below its threshold cannot be in the first two, and the last copy of a
block is never reclaimed. So a scan costs what is hot and replicated, not what is known.
"""

from collections.abc import Sequence
from typing import NamedTuple

from vertumnus.domain.units import BlockKey, Blocks
from vertumnus.policy.prefix.demand import Demand
from vertumnus.policy.prefix.index import PrefixIndex


class Candidate(NamedTuple):
    """A block at a degree, and what speaks for an operation."""

    key: BlockKey
    degree: int
    depth: Blocks
    replicas: int
    """r: workers of the degree that hold it."""
    demand: float
    """missed[z, C] [ns] for a first replica, access[z, C] otherwise."""


def inter_candidates(index: PrefixIndex, demand: Demand, degrees: Sequence[int]) -> list[Candidate]:
    """Return what degrees without a copy have missed above the bound (lines 4-6).

    Blocks that nobody holds are left out: there is nothing to copy.
    """
    found = []
    for key, degree, missed_ns in demand.busy_missed():
        node = index.node(key)
        if degree in degrees and node is not None and node.owners and not index.replica_count(key, degree):
            found.append(Candidate(key, degree, node.depth, 0, missed_ns))
    return found


def intra_candidates(
    index: PrefixIndex, demand: Demand, degrees: Sequence[int], theta_intra: float
) -> list[Candidate]:
    """Return what the replicas of a degree are asked for above *theta_intra* each (lines 8-9)."""
    found = []
    for key, degree, access in demand.busy_accessed():
        node = index.node(key)
        if degree in degrees and node is not None:
            replicas = index.replica_count(key, degree)
            if replicas and access > replicas * theta_intra:
                found.append(Candidate(key, degree, node.depth, replicas, access))
    return found


def reclaim_candidates(
    index: PrefixIndex, demand: Demand, degrees: Sequence[int], theta_reclaim: float, grace_scans: int
) -> list[Candidate]:
    """Return what the replicas of a degree are asked for below *theta_reclaim* each (lines 10-11).

    A block whose last copy was made less than *grace_scans* scans ago is too young to be judged.
    """
    latest, found = index.scan - grace_scans, []
    for key, node in index.replicated():
        if node.made > latest:
            continue
        for degree in degrees:
            replicas = index.replica_count(key, degree)
            if replicas:
                access = demand.access(key, degree)
                if access < replicas * theta_reclaim:
                    found.append(Candidate(key, degree, node.depth, replicas, access))
    return found
