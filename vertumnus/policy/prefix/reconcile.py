"""What a split leaves behind: blocks of a prefix on both halves, fetched on first reuse (sec. 6.2).

A half of a split worker holds every other block of a prefix, so the prefix does not count there. When
a request that reuses it is placed at the half, the missing blocks are copied from the ranks that the
half was once one worker with, if that is faster than to compute them; its step waits for the copy.
"""

from collections.abc import Sequence
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.link import LinkConfig
from vertumnus.domain.orders import CloseTransition, Transfer
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request, reusable_tokens
from vertumnus.domain.units import BlockKey, Blocks, Rank, Tokens
from vertumnus.policy.prefix.index import PrefixIndex


class Fetch(NamedTuple):
    """What a placed request waits for."""

    transfer_id: int
    order: Transfer | None
    """The transfer to start; None when one that is under way brings the blocks."""


class Reconciler:
    """Which ranks hold the other half of a worker's prefixes, and the transfers that fetch it."""

    def __init__(
        self,
        index: PrefixIndex,
        prefill_time: PrefillTimeModel,
        link: LinkConfig,
        *,
        block_tokens: Tokens,
        block_bytes: int,
    ) -> None:
        self._index = index
        self._prefill_time = prefill_time
        self._link = link
        self._block_tokens = block_tokens
        self._block_bytes = block_bytes
        self._reach: dict[CpGroup, int] = {}
        """Ranks outside a worker that its ranks were one worker with, as a bitmask."""
        self._under_way: dict[int, Transfer] = {}
        self._last_id = 0

    def recompose(self, order: CloseTransition) -> None:
        """Note that *order* put its targets where its sources were."""
        reached = 0
        for source in order.sources:
            reached |= source.mask | self._reach.pop(source, 0)
        for target in order.targets:
            beyond = reached & ~target.mask
            if beyond:
                self._reach[target] = beyond

    def fetch(self, request: Request, worker: CpGroup, held: Blocks, known: Blocks) -> Fetch | None:
        """Return the copy that *request*, placed at *worker* with *held* blocks there, shall wait for.

        None when nothing is to be had, or computing it is faster.
        """
        reach = self._reach.get(worker, 0)
        keys = request.block_keys or ()
        if not reach or held >= known:
            return None
        for transfer in self._under_way.values():
            if transfer.destination == worker and keys[held] in transfer.path:
                return Fetch(transfer.transfer_id, None)
        sources = self._sources(keys[held:known], worker.mask, reach)
        travelling = sum(1 for rank in sources if not worker.mask >> rank & 1)
        if not travelling or not self._pays(request, worker.degree, held, held + len(sources), travelling):
            return None
        self._last_id += 1
        order = Transfer(
            self._last_id,
            keys[: held + len(sources)],
            held,
            tuple(sources),
            worker,
            "reconcile",
            request.request_id,
        )
        self._under_way[self._last_id] = order
        return Fetch(self._last_id, order)

    def end(self, transfer_id: int) -> Transfer:
        """Note that a transfer has ended, in any way, and return its order."""
        return self._under_way.pop(transfer_id)

    def _sources(self, keys: Sequence[BlockKey], mine: int, reach: int) -> list[Rank]:
        """Return a rank that has each leading key: one of the worker's own, else one in reach."""
        sources: list[Rank] = []
        for key in keys:
            node = self._index.node(key)
            owners = 0 if node is None else (node.owners & mine) or (node.owners & reach)
            if not owners:
                break
            sources.append((owners & -owners).bit_length() - 1)
        return sources

    def _pays(self, request: Request, degree: int, held: Blocks, then: Blocks, travelling: Blocks) -> bool:
        length, predict = request.input_tokens, self._prefill_time.predict
        cached, more = (reusable_tokens(length, self._block_tokens, blocks) for blocks in (held, then))
        saved = predict(degree, length - cached, cached) - predict(degree, length - more, more)
        return saved > self._link.transfer(travelling * self._block_bytes)
