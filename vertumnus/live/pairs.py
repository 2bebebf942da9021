"""Two-rank process groups for transfers: one that breaks takes nobody else's down.

(A timed-out transfer in a group of three poisoned it for the pair that was not involved, too.)
"""

from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import Store

from vertumnus.live.device import wait_for_works
from vertumnus.live.groups import brief, make_group, meet, patience_of
from vertumnus.live.messages import Peer


class Pair:
    """The group of two ranks as one of them sees it."""

    def __init__(self, group: dist.ProcessGroup, device: torch.device, timeout_s: float) -> None:
        self._group = group
        self._device = device
        self._timeout_s = timeout_s
        self._other = 1 - group.rank()

    def post_sends(self, blocks: Sequence[Tensor]) -> list[dist.Work]:
        """Begin to send contiguous *blocks*; the other end must post as many receives."""
        return [self._group.send([block], self._other, tag) for tag, block in enumerate(blocks)]

    def post_receives(self, blocks: Sequence[Tensor]) -> list[dist.Work]:
        """Begin to receive into *blocks*, in the order in which the other end sends them."""
        return [self._group.recv([block], self._other, tag) for tag, block in enumerate(blocks)]

    def post_exchange(self, sends: Sequence[Tensor], receives: Sequence[Tensor]) -> list[dist.Work]:
        """Begin to send and to receive, each direction at the same turn at both ends.

        NCCL runs a pair's operations one after the other: two ends that both receive first would wait
        for ever.
        """
        if self._other == 1:
            return self.post_sends(sends) + self.post_receives(receives)
        return self.post_receives(receives) + self.post_sends(sends)

    def finish(self, works: Sequence[dist.Work], direction: str) -> None:
        """Wait until *works* are over. Raises RuntimeError that names the *direction* when one broke."""
        try:
            wait_for_works(works, self._device, self._timeout_s)
        except RuntimeError as error:  # gloo's and NCCL's own
            raise RuntimeError(f"{direction}: {brief(error)}") from error


class PairGroups:
    """The pairs that one process is in, made at start; a dead one's successor on first use by both ends."""

    def __init__(self, me: Peer, store: Store, device: torch.device, timeout_s: float) -> None:
        """Meet at *store*, at first for as long as it is patient; each operation has *timeout_s*."""
        self._me = me
        self._store = store
        self._patience = patience_of(store)
        self._device = device
        self._timeout_s = timeout_s
        self._made: dict[Peer, tuple[int, Pair]] = {}

    def connect(self, others: Iterable[Peer]) -> None:
        """Meet *others* now; all ranks must go in one order of pairs, so that nobody waits in a circle."""
        for other in others:
            name, place = self._pair_with(other)
            meet(self._store, name, place, 2, self._patience)
            self.of(other, generation=0)

    def of(self, other: Peer, generation: int) -> Pair:
        """Return the *generation*-th group with *other*. Raises RuntimeError when it does not come."""
        made = self._made.get(other)
        if made is None or made[0] != generation:
            self._made[other] = made = (generation, self._make(other, generation))
        return made[1]

    def _make(self, other: Peer, generation: int) -> Pair:
        name, place = self._pair_with(other)
        prefix = f"{name}/{generation}"
        group = make_group(self._store, prefix, place, 2, self._device, self._timeout_s)
        pair = Pair(group, self._device, self._timeout_s)
        # NCCL connects with the first message: not with one that a request waits for
        sent, received = torch.zeros(2, 1, dtype=torch.uint8, device=self._device)
        pair.finish(pair.post_exchange([sent], [received]), f"with {other}")
        return pair

    def _pair_with(self, other: Peer) -> tuple[str, int]:
        """Return what the pair with *other* is called, and this process's place in it."""
        low, high = sorted((self._me, other))
        return f"pair/{low.pool}{low.rank}-{high.pool}{high.rank}", (low, high).index(self._me)
