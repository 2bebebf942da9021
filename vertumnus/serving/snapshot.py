"""A pool between two events, frozen: any number of copies can be made of it and go ways of their own."""

import pickle
from typing import NamedTuple

from vertumnus.domain.units import Nanoseconds
from vertumnus.policy.control_plane import ControlPlane
from vertumnus.policy.recent import RecentArrivals
from vertumnus.workers.fleet import Fleet


class Snapshot(NamedTuple):
    """Everything that fleet and control plane know; those who watch placements stay behind."""

    at_ns: Nanoseconds
    """When it was taken, on the run's clock."""
    state: bytes
    """Both as one pickle: what they share stays shared. It is for this program's own processes only."""


class Restored(NamedTuple):
    """A copy of the pool."""

    fleet: Fleet
    control: ControlPlane


def take_snapshot(fleet: Fleet, control: ControlPlane, at_ns: Nanoseconds) -> Snapshot:
    """Freeze the pool; it must stand between two events.

    The recent arrivals stay behind: what a copy is to meet is told to it, and they are half of the cost.
    """
    requests = control.requests
    recent, requests.recent = requests.recent, RecentArrivals()
    try:
        return Snapshot(at_ns, pickle.dumps((fleet, control), protocol=pickle.HIGHEST_PROTOCOL))
    finally:
        requests.recent = recent


def restore(snapshot: Snapshot) -> Restored:
    """Return a new copy, which answers the same facts as the original would have, from there on."""
    return Restored(*pickle.loads(snapshot.state))
