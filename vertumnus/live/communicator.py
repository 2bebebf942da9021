"""What a CP group's ranks say to each other during a step: one kind of collective, the all-gather.

Every rank of the group must enter every call, in the same order, with the same size and dtype: a
mismatch does not raise in gloo, it aborts the process. Callers verify before they call.
"""

from datetime import timedelta
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

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
        """Return every rank's contiguous 1-D *mine_n* as [C, n], by rank in the group."""


class Solo:
    """A group of degree 1: nobody to talk to."""

    rank_in_group = 0
    size = 1

    def all_gather(self, mine_n: Tensor) -> Tensor:
        """Return *mine_n* as [1, n], not copied."""
        return mine_n.unsqueeze(0)


class GlooGroup:
    """A torch process group (gloo; nccl answers to the same calls) with a limit on every wait."""

    def __init__(self, group: dist.ProcessGroup, timeout_s: float) -> None:
        self._group = group
        self._timeout = timedelta(seconds=timeout_s)
        self.rank_in_group: int = group.rank()
        self.size: int = group.size()

    def all_gather(self, mine_n: Tensor) -> Tensor:
        """Return every rank's *mine_n* as [C, n].

        Raises RuntimeError when a peer is gone or the wait passes the limit; the group is dead then.
        """
        all_Cn = torch.empty(self.size, mine_n.numel(), dtype=mine_n.dtype, device=mine_n.device)
        self._group._allgather_base(all_Cn.view(-1), mine_n).wait(self._timeout)
        return all_Cn
