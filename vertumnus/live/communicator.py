"""What a CP group's ranks say to each other during a step: one kind of collective, the all-gather.

Every rank of the group must enter every call, in the same order, with the same size and dtype: a
mismatch does not raise in gloo, it aborts the process. Callers verify before they call.
"""

from datetime import timedelta
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from vertumnus.live.device import wait_for_works

# C ranks of the group · n elements that each rank sends


class Communicator(Protocol):
    """The ranks of one CP group as one of them sees it."""

    @property
    def rank_in_group(self) -> int:
        """This rank's place in the group, 0 .. size - 1."""

    @property
    def size(self) -> int:
        """C."""

    def all_gather(self, mine_n: Tensor) -> Tensor:
        """Return every rank's contiguous 1-D *mine_n* as [C, n], by rank in the group.

        On CUDA the device may still be at it: what this thread orders next comes after it.
        """

    def settle(self) -> None:
        """Return when all that was gathered is there.

        Raises RuntimeError when a peer was lost; the group is dead then.
        """


class Solo:
    """A group of degree 1: nobody to talk to."""

    rank_in_group = 0
    size = 1

    def all_gather(self, mine_n: Tensor) -> Tensor:
        """Return *mine_n* as [1, n], not copied."""
        return mine_n.unsqueeze(0)

    def settle(self) -> None:
        """Do nothing."""


class GlooGroup:
    """A group on CPUs, with a limit on every wait."""

    def __init__(self, group: dist.ProcessGroup, timeout_s: float) -> None:
        self._group = group
        self._timeout = timedelta(seconds=timeout_s)
        self.rank_in_group: int = group.rank()
        self.size: int = group.size()

    def all_gather(self, mine_n: Tensor) -> Tensor:
        """Return every rank's *mine_n* as [C, n].

        Raises RuntimeError when a peer is gone or the wait passes the limit; the group is dead then.
        """
        all_Cn, work = _begin(self._group, mine_n)
        work.wait(self._timeout)
        return all_Cn

    def settle(self) -> None:
        """Do nothing: what was gathered is there."""


class NcclGroup:
    """A group on CUDA devices: the host goes on while they exchange, and looks at the end if they did."""

    def __init__(self, group: dist.ProcessGroup, device: torch.device, timeout_s: float) -> None:
        self._group = group
        self._device = device
        self._timeout_s = timeout_s
        self._last: dist.Work | None = None
        self.rank_in_group: int = group.rank()
        self.size: int = group.size()

    def all_gather(self, mine_n: Tensor) -> Tensor:
        """Return every rank's *mine_n* as [C, n], there when this thread's stream comes to it.

        Raises RuntimeError when the group is known to be dead.
        """
        all_Cn, self._last = _begin(self._group, mine_n)
        self._last.wait()
        return all_Cn

    def settle(self) -> None:
        """Return when the last gather is over, and with it all before. Raises RuntimeError when one broke."""
        last, self._last = self._last, None
        if last is not None:
            wait_for_works([last], self._device, self._timeout_s)


def _begin(group: dist.ProcessGroup, mine_n: Tensor) -> tuple[Tensor, dist.Work]:
    all_Cn = torch.empty(group.size(), mine_n.numel(), dtype=mine_n.dtype, device=mine_n.device)
    return all_Cn, group._allgather_base(all_Cn.view(-1), mine_n)
