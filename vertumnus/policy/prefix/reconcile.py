"""What a split leaves behind: blocks of a prefix on both halves, fetched on first reuse (sec. 6.2).

A half of a split worker holds every other block of a prefix, so the prefix does not count there. When
a request that reuses it is placed at the half, the missing blocks are copied from the ranks that the
half was once one worker with, if that is faster than to compute them; its step waits for the copy.
"""

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.orders import CloseTransition
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request, reusable_tokens
from vertumnus.domain.units import Blocks, Nanoseconds, Tokens
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.prefix.transfers import Fetch, TransferBook


class Reconciler:
    """Which ranks hold the other half of a worker's prefixes, and the transfers that fetch it."""

    def __init__(
        self,
        index: PrefixIndex,
        transfers: TransferBook,
        prefill_time: PrefillTimeModel,
        block_tokens: Tokens,
    ) -> None:
        self._index = index
        self._transfers = transfers
        self._prefill_time = prefill_time
        self._block_tokens = block_tokens
        self._reach: dict[CpGroup, int] = {}
        """Ranks outside a worker that its ranks were one worker with, as a bitmask."""

    def recompose(self, order: CloseTransition) -> None:
        """Note that *order* put its targets where its sources were."""
        reached = 0
        for source in order.sources:
            reached |= source.mask | self._reach.pop(source, 0)
        for target in order.targets:
            beyond = reached & ~target.mask
            if beyond:
                self._reach[target] = beyond

    def fetch(
        self, request: Request, worker: CpGroup, held: Blocks, known: Blocks, now: Nanoseconds
    ) -> Fetch | None:
        """Return the copy that *request*, placed at *worker* with *held* blocks there, shall wait for.

        None when nothing is to be had, or computing it is faster.
        """
        reach = self._reach.get(worker, 0)
        keys = request.block_keys or ()
        if not reach or held >= known:
            return None
        under_way = self._transfers.bringing(worker, keys[held])
        if under_way is not None:
            return Fetch(under_way.transfer_id, None)
        sources = self._index.owners(keys[held:known], worker.mask, reach)
        travelling = sum(1 for rank in sources if not worker.mask >> rank & 1)
        then = held + len(sources)
        if not travelling or not self._pays(request, worker.degree, held, then, travelling):
            return None
        order = self._transfers.begin(
            keys[:then], held, sources, worker, "reconcile", "reconcile", request.request_id, now
        )
        return Fetch(order.transfer_id, order)

    def _pays(self, request: Request, degree: int, held: Blocks, then: Blocks, travelling: Blocks) -> bool:
        length, predict = request.input_tokens, self._prefill_time.predict
        cached, more = (reusable_tokens(length, self._block_tokens, blocks) for blocks in (held, then))
        saved = predict(degree, length - cached, cached) - predict(degree, length - more, more)
        return saved > self._transfers.links.copy_ns(travelling)
