"""The book of transfers: what is on its way to which worker, whatever it was ordered for (D4, sec. 7.2).

Every copy of blocks between workers, be it reconciliation, pull, inter- or intra-degree replication, is
ordered here and ends here. A transfer reserves its links from the order to its end; its blocks are
*pending* at the destination meanwhile, so that a second wish for one of them joins the transfer instead
of copying it again. The fleet pins the source and reserves the destination when the order reaches it,
and tells the end, in any way, by TransferFinished or TransferFailed.
"""

from collections.abc import Sequence
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import InvariantError
from vertumnus.domain.orders import Origin, Transfer, TransferReason
from vertumnus.domain.units import BlockKey, Blocks, Nanoseconds, Rank, RequestId
from vertumnus.domain.wording import counted
from vertumnus.policy.links import Links
from vertumnus.policy.pool import PoolState


class Fetch(NamedTuple):
    """What a placed request waits for."""

    transfer_id: int
    """For ``Prefill.after_transfer``."""
    order: Transfer | None
    """The transfer to start, told before the request's Prefill; None when one under way brings the blocks."""


class TransferBook:
    """Transfers that were ordered and have not ended."""

    def __init__(self, pool: PoolState, links: Links) -> None:
        self.links = links
        self._pool = pool
        self._under_way: dict[int, Transfer] = {}
        self._pending: dict[CpGroup, dict[BlockKey, int]] = {}
        """The transfer that brings each pending block, by destination and block."""
        self._last_id = 0

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(
        self,
        path: Sequence[BlockKey],
        first_block: Blocks,
        sources: Sequence[Rank],
        destination: CpGroup,
        reason: TransferReason,
        origin: Origin,
        for_request: RequestId | None,
        now: Nanoseconds,
    ) -> Transfer:
        """Return the order that copies ``path[first_block:]`` from *sources*, its links reserved.

        *sources* name a rank of each block; those of the destination itself do not travel.
        """
        self._last_id += 1
        order = Transfer(
            self._last_id, tuple(path), first_block, tuple(sources), destination, reason, for_request, origin
        )
        travelling = [rank for rank in sources if rank not in destination.ranks]
        workers = dict.fromkeys(self._pool.of_rank(rank).group for rank in travelling)
        self.links.reserve(order.transfer_id, tuple(workers), destination, len(travelling), now)
        self._under_way[order.transfer_id] = order
        self._pending.setdefault(destination, {}).update(
            dict.fromkeys(order.path[first_block:], order.transfer_id)
        )
        return order

    def order_of(self, transfer_id: int) -> Transfer:
        """Return the order of a transfer under way."""
        return self._under_way[transfer_id]

    def bringing(self, destination: CpGroup, key: BlockKey) -> Transfer | None:
        """Return the transfer under way that brings the block to *destination*; None when there is none."""
        pending = self._pending.get(destination)
        transfer_id = None if pending is None else pending.get(key)
        return None if transfer_id is None else self._under_way[transfer_id]

    def receiving(self) -> frozenset[CpGroup]:
        """Return the workers that blocks are on their way to."""
        return frozenset([order.destination for order in self._under_way.values()])

    def end(self, transfer_id: int, now: Nanoseconds) -> Transfer:
        """Note that a transfer has ended, in any way, and return its order."""
        order = self._under_way.pop(transfer_id)
        self.links.release(transfer_id, now)
        pending = self._pending[order.destination]
        for key in order.path[order.first_block :]:
            if pending.get(key) == transfer_id:
                del pending[key]
        return order

    def check(self) -> None:
        """Raise InvariantError unless links and pending blocks are those of the transfers under way."""
        if len(self.links) != len(self._under_way):
            raise InvariantError(
                f"{counted(len(self.links), 'link')} reserved for {counted(len(self._under_way), 'transfer')}"
            )
        for destination, pending in self._pending.items():
            if any(self._under_way[i].destination != destination for i in pending.values()):
                raise InvariantError(f"worker {destination}: pending blocks of another worker's transfer")
