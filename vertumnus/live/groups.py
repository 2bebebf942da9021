"""Process groups, each built directly for its members (sec. 8).

A directly built group needs only its own members: `new_group` would have every rank of the pool take
part, in one order, members or not, and would not let survivors regroup. Each group meets under a
prefix of its own in the coordinator's store; a group that failed is dead, its successor has the next
generation and so another prefix.
"""

import re
import socket
from collections.abc import Iterable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend, PrefixStore, Store, TCPStore

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import Rank
from vertumnus.live.communicator import Communicator, GlooGroup, NcclGroup, Solo
from vertumnus.live.control import LOOPBACK


def serve_store() -> TCPStore:
    """Return the coordinator's rendezvous store, listening on a free port of the loopback interface."""
    # given a port alone, TCPStore would listen on every interface
    listener = socket.create_server((LOOPBACK, 0))
    port = listener.getsockname()[1]
    return TCPStore(
        LOOPBACK, port, is_master=True, wait_for_workers=False, master_listen_fd=listener.detach()
    )


def join_store(port: int, timeout_s: float) -> TCPStore:
    """Return a rank's connection to the coordinator's store."""
    return TCPStore(
        LOOPBACK, port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=timeout_s)
    )


def patience_of(store: Store) -> timedelta:
    """Return how long *store* waits. Ask before a group is made on it: that sets it."""
    patience: timedelta = store.timeout  # type: ignore[attr-defined]  # not in torch's stubs
    return patience


def meet(store: Store, prefix: str, place: int, size: int, patience: timedelta) -> None:
    """Return when all *size* members of a group are at *store*, of which this process is number *place*.

    A rank that has come up may wait long for one that has not: that is the start's time, and not held against
    the limit on an operation, which counts from the making of a group on.
    Raises RuntimeError when one has not come after *patience*.
    """
    here = PrefixStore(f"here/{prefix}", store)
    here.set(str(place), "")
    here.wait([str(member) for member in range(size)], patience)


def make_group(
    store: Store, prefix: str, place: int, size: int, device: torch.device, timeout_s: float
) -> dist.ProcessGroup:
    """Return the group of *size* members that meets at *prefix*, of which this process is number *place*.

    Every member must call it; the wait for the others, and later each operation, ends after *timeout_s*
    with RuntimeError.
    """
    meeting = PrefixStore(prefix, store)
    meeting.set_timeout(timedelta(seconds=timeout_s))
    if device.type == "cuda":
        kind, backend = dist.ProcessGroup.BackendType.NCCL, _nccl(meeting, place, size, timeout_s)
    else:
        kind, backend = dist.ProcessGroup.BackendType.GLOO, _gloo(meeting, place, size, timeout_s)
    group = dist.ProcessGroup(meeting, place, size)
    group._set_default_backend(kind)
    group._register_backend(torch.device(device.type), kind, backend)
    return group


def brief(error: Exception) -> str:
    """Return what a backend's error says, without its source line and its advice."""
    if not isinstance(error, RuntimeError):
        return f"{type(error).__name__}: {error}"
    return re.sub(r"^\[[^\]]*\] *", "", str(error)).partition(". This is typically")[0]


class CpGroups:
    """The process groups of one rank's possible workers, made at start and warmed."""

    def __init__(self, store: Store, rank: Rank, device: torch.device, timeout_s: float) -> None:
        """Meet at *store*, at first for as long as it is patient; each operation has *timeout_s*."""
        self._store = store
        self._patience = patience_of(store)
        self._rank = rank
        self._device = device
        self._timeout_s = timeout_s
        self._made: dict[CpGroup, tuple[int, Communicator]] = {}

    def warm(self, groups: Iterable[CpGroup]) -> None:
        """Make every one of *groups* that this rank is in, and send a first byte through each.

        All ranks must pass the groups in the same order.
        """
        for group in groups:
            if self._rank in group.ranks:
                place = self._rank - group.first_rank
                meet(self._store, f"worker/{group}", place, group.degree, self._patience)
                communicator = self.of(group, generation=0)
                communicator.all_gather(torch.zeros(1, device=self._device))
                communicator.settle()

    def of(self, group: CpGroup, generation: int) -> Communicator:
        """Return the *generation*-th group of these ranks; made on first use, by all members at once."""
        made = self._made.get(group)
        if made is None or made[0] != generation:
            self._made[group] = made = (generation, self._make(group, generation))
        return made[1]

    def _make(self, group: CpGroup, generation: int) -> Communicator:
        if group.degree == 1:
            return Solo()
        prefix = f"worker/{group}/{generation}"
        place = self._rank - group.first_rank
        made = make_group(self._store, prefix, place, group.degree, self._device, self._timeout_s)
        if self._device.type == "cuda":
            return NcclGroup(made, self._device, self._timeout_s)
        return GlooGroup(made, self._timeout_s)


def _gloo(meeting: Store, place: int, size: int, timeout_s: float) -> Backend:
    options = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
    options._devices = [dist.ProcessGroupGloo.create_device(hostname=LOOPBACK)]
    options._timeout = timedelta(seconds=timeout_s)
    options._threads = 1
    return dist.ProcessGroupGloo(meeting, place, size, options)


def _nccl(meeting: Store, place: int, size: int, timeout_s: float) -> Backend:
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = timedelta(seconds=timeout_s)
    return dist.ProcessGroupNCCL(meeting, place, size, options)
