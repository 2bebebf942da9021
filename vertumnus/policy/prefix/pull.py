"""Pulls at routing time: what fetching the missing blocks would mean for each candidate (sec. 7.2).

A candidate that holds less of a prompt's prefix than the best holder may fetch the rest while the request
waits there. For one request, in the order of a decision:

    pulls = puller.look(request, match.held, now)           # once; None when nobody holds more than others
    pull = pulls.price(worker, held, wait_ns, service_ns)   # per candidate; None when computing is no later
    fetch = puller.begin(request, pull, now)                # for the chosen candidate only
    if fetch.order is not None: orders.append(fetch.order)  # before the request's Prefill
    Prefill(..., expected_cached=pull.cached_tokens, after_transfer=fetch.transfer_id)

``held`` is what is resident at the candidate, blocks that queued requests will compute not counted: the
fleet copies onto what is there when it gets the order. The prefill of a pulled offer starts at
``max(now + wait_ns, pull.ready_ns)`` and takes ``pull.service_ns``. When the transfer fails, for lack of
room or of a rank, the request's step starts without it and computes the blocks.
"""

from collections.abc import Sequence
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.errors import ProtocolError
from vertumnus.domain.orders import Origin, Transfer
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks, Nanoseconds, RequestId, Tokens
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.index import PrefixIndex
from vertumnus.policy.prefix.transfers import Fetch, TransferBook


class Pull(NamedTuple):
    """One candidate with the blocks that it would fetch."""

    worker: CpGroup
    ready_ns: Nanoseconds
    """When the blocks would be there [ns of the run's clock]."""
    first_block: Blocks
    """Leading blocks that the candidate holds."""
    blocks: Blocks
    """Leading blocks that it would hold then."""
    cached_tokens: Tokens
    """P with them."""
    service_ns: Nanoseconds
    """s with them: E at the candidate's degree [ns]."""
    source: CpGroup | None
    """The worker that they come from; None when a transfer under way brings them."""
    joined: int | None = None
    """That transfer."""


class Fetched(NamedTuple):
    """What fetching the missing blocks would bring to one worker."""

    ready_ns: Nanoseconds
    """When the blocks would be there [ns of the run's clock]."""
    blocks: Blocks
    """Leading blocks that the worker would hold then."""
    under_way: Transfer | None
    """The copy that brings them already; None where it would have to be made."""


class Puller:
    """Prices pulls on the links as they are reserved, and begins the one that was chosen."""

    def __init__(
        self,
        pool: PoolState,
        index: PrefixIndex,
        transfers: TransferBook,
        prefill_time: PrefillTimeModel,
        block_tokens: Tokens,
    ) -> None:
        self.transfers = transfers
        self.prefill_time = prefill_time
        self.block_tokens = block_tokens
        self._pool = pool
        self._index = index

    def look(self, request: Request, held: Sequence[Blocks], now: Nanoseconds) -> "Pulls | None":
        """Return the pulls that *request* may choose from; *held* are leading blocks by the worker's place.

        The source is a worker that serves and holds the longest prefix of those that do, of several the one
        whose link has rested longest. None when nobody who serves holds more than the worker with the least.
        """
        most = (request.input_tokens - 1) // self.block_tokens  # one token is always computed
        best, least = min(max(held), most), min(held)
        if best <= least:
            return None
        sources = self._holding(best, held)
        if not sources:  # who holds the most drains, for a moment or as long as an operator wants
            serving = zip(self._pool.workers.values(), held, strict=True)
            best = min(max((blocks for state, blocks in serving if state.is_serving), default=0), most)
            sources = self._holding(best, held) if best > least else []
        return Pulls(self, request, self.transfers.links.first_free(sources), best, now) if sources else None

    def _holding(self, blocks: Blocks, held: Sequence[Blocks]) -> list[CpGroup]:
        """Return the workers that serve and hold *blocks* leading blocks; *held* is by place."""
        return [
            state.group
            for state, there in zip(self._pool.workers.values(), held, strict=True)
            if there >= blocks and state.out_of_service is None and state.draining is None
        ]

    def begin(self, request: Request, pull: Pull, now: Nanoseconds) -> Fetch:
        """Return the transfer that the request, placed by *pull*, waits for; its links are reserved."""
        if pull.joined is not None:
            return Fetch(pull.joined, None)
        order = self._copy(request, pull, request.request_id, now)
        return Fetch(order.transfer_id, order)

    def prefetch(
        self,
        request: Request,
        worker: CpGroup,
        held: Sequence[Blocks],
        wait_ns: Nanoseconds,
        service_ns: Nanoseconds,
        now: Nanoseconds,
    ) -> Transfer | None:
        """Return the copy that *request*, placed at *worker* without a pull, will find done when it starts.

        It waits for nothing: the copy has to fit into the predicted wait. None where it does not, where one
        is under way, and where nobody holds more.
        """
        pulls = self.look(request, held, now) if wait_ns else None
        if pulls is None:
            return None
        state = self._pool.workers[worker]
        pull = pulls.price(state, held[state.place], wait_ns, service_ns)
        if pull is None or pull.joined is not None or pull.ready_ns > now + wait_ns:
            return None
        return self._copy(request, pull, None, now)

    def _copy(
        self, request: Request, pull: Pull, for_request: RequestId | None, now: Nanoseconds
    ) -> Transfer:
        if pull.source is None:
            raise ProtocolError(f"request {request.request_id}: a pull without a source joins a transfer")
        path = (request.block_keys or ())[: pull.blocks]
        sources = self._index.owners(path[pull.first_block :], pull.worker.mask, pull.source.mask)
        origin: Origin = "prefetch" if for_request is None else "pull"
        return self.transfers.begin(
            path, pull.first_block, sources, pull.worker, "pull", origin, for_request, now
        )


class Pulls:
    """The pulls of one request at one instant; made by `Puller.look`."""

    def __init__(
        self, puller: Puller, request: Request, source: CpGroup, best: Blocks, now: Nanoseconds
    ) -> None:
        self._puller = puller
        self._request = request
        self._source = source
        self.best = best
        """Leading blocks of the prompt that the source holds."""
        self._now = now
        self._links = puller.transfers.links
        self._out_free = max(now, self._links.out_free(source))
        self.receiving = puller.transfers.receiving()
        """Workers that blocks are on their way to."""
        self._service_ns: dict[tuple[int, Blocks], Nanoseconds] = {}

    def fetch_ns(self, held: Blocks) -> Nanoseconds:
        """Return the wait for the other blocks, with *held* leading ones there and no copy under way [ns]."""
        return self._out_free + self._links.copy_ns(self.best - held) - self._now

    def fetched(self, group: CpGroup, held: Blocks) -> Fetched:
        """Return what *group*, with *held* leading blocks and fewer than `best`, would have and when."""
        links, keys = self._links, self._request.block_keys or ()
        under_way = self._puller.transfers.bringing(group, keys[held])
        if under_way is None:
            free = max(self._out_free, links.in_free(group))
            return Fetched(free + links.copy_ns(self.best - held), self.best, None)
        return Fetched(links.end_of(under_way.transfer_id), self._reached(under_way.path, held), under_way)

    def price(
        self, worker: WorkerState, held: Blocks, wait_ns: Nanoseconds, service_ns: Nanoseconds
    ) -> Pull | None:
        """Return the pull of *worker*, which holds *held* leading blocks.

        None when it has nothing to fetch, or when its prefill, after *wait_ns* in *service_ns* with what it
        holds, would end no later than with the fetched blocks.
        """
        if held >= self.best:
            return None
        group = worker.group
        ready, blocks, under_way = self.fetched(group, held)
        service = self._service(group.degree, blocks)
        start = self._now + wait_ns
        if max(start, ready) + service >= start + service_ns:
            return None
        cached = blocks * self._puller.block_tokens
        if under_way is not None:
            return Pull(group, ready, held, blocks, cached, service, None, under_way.transfer_id)
        return Pull(group, ready, held, blocks, cached, service, self._source)

    def _reached(self, path: Sequence[int], held: Blocks) -> Blocks:
        """Return how many leading blocks of the prompt *path*, on its way, covers."""
        keys, end = self._request.block_keys or (), held
        for key, ours in zip(path[held:], keys[held : self.best], strict=False):
            if key != ours:
                break
            end += 1
        return end

    def _service(self, degree: int, blocks: Blocks) -> Nanoseconds:
        key = (degree, blocks)
        service = self._service_ns.get(key)
        if service is None:
            cached = blocks * self._puller.block_tokens
            uncached = self._request.input_tokens - cached
            service = self._puller.prefill_time.predict(degree, uncached, cached)
            self._service_ns[key] = service
        return service
