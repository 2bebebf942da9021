"""The prefix index by heat: which prefixes are wanted, who holds them, who missed them (sec. 7)."""

from heapq import nlargest
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import BlockKey, Blocks, Nanoseconds, RequestId, Tokens
from vertumnus.policy.control_plane import ControlPlane
from vertumnus_console.replay import Replay

HOTTEST = 100
"""Prefixes that are told."""


class Heat(NamedTuple):
    """Demand for a prefix at one degree."""

    degree: int
    access: float
    """Reuses, decayed."""
    missed_ns: float
    """Predicted time lost for want of a copy, decayed [ns]."""
    replicas: int
    """Workers of the degree that hold its last block."""


class Prefix(NamedTuple):
    """A prefix that no longer one is wanted as much as."""

    key: BlockKey
    """Of its last block."""
    blocks: Blocks
    tokens: Tokens
    access: float
    missed_ns: float
    heat: tuple[Heat, ...]
    """By degree."""
    holders: tuple[CpGroup, ...]
    """Workers of which a rank holds its last block."""


class TrieLook(NamedTuple):
    """The index in numbers."""

    nodes: int
    wanted: int
    """Nodes with demand."""
    prefixes: tuple[Prefix, ...]
    """Hottest first."""


class PrefixUse(NamedTuple):
    """One prefix, looked at closely."""

    prefix: Prefix
    path: tuple[tuple[Blocks, tuple[CpGroup, ...]], ...]
    """Runs of blocks with the same holders, root first: (last block of the run, holders)."""
    users: tuple[tuple[RequestId, str], ...]
    """Open requests that begin with it, and where they are."""


def trie(replay: Replay, _now: Nanoseconds) -> TrieLook:
    """Return the hottest prefixes, by access, then by what was missed."""
    control = replay.pool.control
    index, demand = control.index, control.statistics.demand
    degrees = sorted({group.degree for group in control.pool.groups})
    heat = {key: demand.total(key) for key in demand}
    below: dict[BlockKey, float] = {}
    for key, (access, _) in heat.items():
        node = index.node(key)
        if node is not None and node.parent is not None:
            below[node.parent] = max(below.get(node.parent, 0.0), access)
    ends = (
        (access, missed, key)
        for key, (access, missed) in heat.items()
        if access > 1.05 * below.get(key, 0.0) or (missed > 0.0 and key not in below)
    )
    hottest = nlargest(HOTTEST, ends)
    block_tokens = replay.header.block_tokens
    prefixes = tuple(_prefix(control, key, degrees, block_tokens) for _, _, key in hottest)
    return TrieLook(len(index), len(heat), tuple(each for each in prefixes if each is not None))


def prefix_use(replay: Replay, key: BlockKey) -> PrefixUse | None:
    """Return what there is to know of the prefix that ends with *key*; None when it is gone."""
    control = replay.pool.control
    degrees = sorted({group.degree for group in control.pool.groups})
    prefix = _prefix(control, key, degrees, replay.header.block_tokens)
    return None if prefix is None else PrefixUse(prefix, _path(control, key), _users(replay, key))


def _prefix(control: ControlPlane, key: BlockKey, degrees: list[int], block_tokens: Tokens) -> Prefix | None:
    node = control.index.node(key)
    if node is None:
        return None
    demand = control.statistics.demand
    access, missed = demand.total(key)
    heat = tuple(
        Heat(
            degree,
            demand.access(key, degree),
            demand.missed_ns(key, degree),
            control.index.replica_count(key, degree),
        )
        for degree in degrees
    )
    holders = _holders(control, node.owners)
    return Prefix(key, node.depth, node.depth * block_tokens, access, missed, heat, holders)


def _holders(control: ControlPlane, owners: int) -> tuple[CpGroup, ...]:
    return tuple(group for group in control.pool.groups if group.mask & owners)


def _path(control: ControlPlane, key: BlockKey) -> tuple[tuple[Blocks, tuple[CpGroup, ...]], ...]:
    runs: list[tuple[Blocks, tuple[CpGroup, ...]]] = []
    node = control.index.node(key)
    while node is not None:
        holders = _holders(control, node.owners)
        if not runs or runs[-1][1] != holders:
            runs.append((node.depth, holders))
        node = None if node.parent is None else control.index.node(node.parent)
    return tuple(reversed(runs))


def _users(replay: Replay, key: BlockKey) -> tuple[tuple[RequestId, str], ...]:
    found = []
    for worker in replay.pool.fleet.workers.values():
        found += [
            (each.request.request_id, f"runs at {worker.group}")
            for each in worker.running
            if key in (each.request.block_keys or ())
        ]
        found += [
            (each.request.request_id, f"queued at {worker.group}")
            for each in worker.waiting()
            if key in (each.request.block_keys or ())
        ]
    return tuple(sorted(found))
