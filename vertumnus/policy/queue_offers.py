"""Offers of `policy=vertumnus`: the place in each queue, the prefix that will be there by then (D3, D4)."""

from collections.abc import Mapping, Sequence

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks, Nanoseconds, RequestId, Tokens
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.offers import Prices
from vertumnus.policy.placement import CostRule, Offer
from vertumnus.policy.policies.vertumnus import VertumnusPolicy
from vertumnus.policy.prefix.pending import Promise
from vertumnus.policy.prefix.pull import Pull, Puller

_NO_PROMISES: Mapping[int, list[Promise]] = {}


class QueuePricer:
    """Prices candidates by what waits there already and what that will leave behind."""

    def __init__(
        self,
        policy: VertumnusPolicy,
        costs: CostRule,
        prefill_time: PrefillTimeModel,
        ledger: Ledger,
        block_tokens: Tokens,
        puller: Puller | None,
    ) -> None:
        """Price with *ledger*; *costs* say which of a worker's possible offers is its best."""
        self._puller = puller
        self._policy = policy
        self._costs = costs
        self._prefill_time = prefill_time
        self._ledger = ledger
        self._block_tokens = block_tokens

    def offers(
        self, request: Request, held: Sequence[Blocks], candidates: Sequence[WorkerState], now: Nanoseconds
    ) -> tuple[Offer, ...]:
        """Return the best offer of each candidate; *held* are its leading blocks, by the worker's place."""
        prices = Prices(self._prefill_time, request.input_tokens, self._block_tokens, candidates)
        inquiry = _Inquiry(self._policy, self._ledger, prices, request.arrival_ns, now)
        promises = self._promises(request, held)
        pulls = None if self._puller is None else self._puller.look(request, held, now)
        offers = []
        for worker in candidates:
            place = worker.place
            choices = [inquiry.offer(worker, held[place])]
            if place in promises:
                choices += inquiry.promised(worker, held[place], promises[place])
            if pulls is not None:
                resident = choices[0]
                pull = pulls.price(worker, held[place], resident.queue_ns, resident.service_ns)
                if pull is not None:
                    choices.append(inquiry.pulled(worker, pull))
            offers.append(choices[0] if len(choices) == 1 else self._best(request, choices))
        return tuple(offers)

    def _promises(self, request: Request, held: Sequence[Blocks]) -> Mapping[int, list[Promise]]:
        pending = self._ledger.pending
        if not self._policy.pending_prefix or not len(pending):
            return _NO_PROMISES
        return pending.promises(request.block_keys or (), held)

    def _best(self, request: Request, offers: Sequence[Offer]) -> Offer:
        costs = self._costs(request, offers)
        return offers[min(range(len(offers)), key=lambda place: costs[place] or 0)]


class _Inquiry:
    """What one request asks of every worker."""

    def __init__(
        self,
        policy: VertumnusPolicy,
        ledger: Ledger,
        prices: Prices,
        arrival_ns: Nanoseconds,
        now: Nanoseconds,
    ) -> None:
        self._ledger = ledger
        self._price_at = prices.at
        self._is_shortest_first = policy.shortest_first
        # the order of s - ageing*waited, as a constant: both sides of a comparison age alike
        self._aged = int(policy.ageing * arrival_ns) if policy.shortest_first else arrival_ns
        self._now = now
        self._left = ledger.under_way(now) if policy.remaining_queue else None

    def offer(
        self,
        worker: WorkerState,
        blocks: Blocks,
        pending: Blocks = 0,
        bringer: RequestId | None = None,
    ) -> Offer:
        """Return the offer of *worker* with *blocks* cached, the last *pending* of them by *bringer*."""
        place, group = worker.place, worker.group
        price = self._price_at(group[1], blocks)
        priority = price[1] + self._aged if self._is_shortest_first else self._aged
        ahead = None if bringer is None else self._ledger.queued_priority(bringer)
        if ahead is not None and ahead > priority:
            priority = ahead  # right after the one that brings the blocks
        wait, behind = self._ledger.queues[place].place(priority)
        queue = self._ledger.outstanding()[place] if self._left is None else self._left[place] + wait
        return Offer(
            group,
            price[0],
            queue,
            price[1],
            price[2],
            price[1] * behind,
            pending,
            priority,
            None if ahead is None else bringer,
        )

    def promised(self, worker: WorkerState, held: Blocks, promises: Sequence[Promise]) -> list[Offer]:
        """Return the offers of *worker* that count on each of its *promises*."""
        return [self.offer(worker, blocks, blocks - held, bringer) for blocks, bringer in promises]

    def pulled(self, worker: WorkerState, pull: Pull) -> Offer:
        """Return the offer of *worker* with the blocks that *pull* brings."""
        offer = self.offer(worker, pull.blocks)
        return offer._replace(queue_ns=max(offer.queue_ns, pull.ready_ns - self._now), pull=pull)
