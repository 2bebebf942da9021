"""Offers of `policy=vertumnus`: the place in each queue, the prefix that will be there by then (D3, D4)."""

from collections.abc import Mapping, Sequence

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks, Nanoseconds, RequestId, Tokens
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.contenders import contenders
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.offers import Prices
from vertumnus.policy.placement import Offer
from vertumnus.policy.policies.vertumnus import ExternalityCosts, VertumnusPolicy
from vertumnus.policy.prefix.pending import Promise
from vertumnus.policy.prefix.pull import Pull, Puller, Pulls

_NO_PROMISES: Mapping[int, list[Promise]] = {}
_NOBODY: frozenset[CpGroup] = frozenset()


class QueuePricer:
    """Prices candidates by what waits there already and what that will leave behind."""

    def __init__(
        self,
        policy: VertumnusPolicy,
        prefill_time: PrefillTimeModel,
        ledger: Ledger,
        block_tokens: Tokens,
        puller: Puller,
    ) -> None:
        self._policy = policy
        self._costs = ExternalityCosts(policy)
        self._prefill_time = prefill_time
        self._ledger = ledger
        self._block_tokens = block_tokens
        self._puller = puller

    def offers(
        self, request: Request, held: Sequence[Blocks], candidates: Sequence[WorkerState], now: Nanoseconds
    ) -> tuple[Offer, ...]:
        """Return the best offer of each candidate; *held* are its leading blocks, by the worker's place."""
        promises, pulls = self._promises(request, held), self._pulls(request, held, now)
        inquiry = self._inquire(request, held, candidates, promises, pulls, now)
        return tuple(inquiry.best(worker) for worker in candidates)

    def contenders(
        self, request: Request, held: Sequence[Blocks], candidates: Sequence[WorkerState], now: Nanoseconds
    ) -> tuple[Offer, ...]:
        """Return as few of `offers` as show which of all is the cheapest."""
        promises, pulls = self._promises(request, held), self._pulls(request, held, now)
        distinct = self._distinct(candidates, held, pulls)
        inquiry = self._inquire(request, held, distinct, promises, pulls, now)
        return contenders(distinct, inquiry.floor, inquiry.bound, inquiry.best, self._costs.of)

    def _distinct(
        self, candidates: Sequence[WorkerState], held: Sequence[Blocks], pulls: Pulls | None
    ) -> list[WorkerState]:
        """Return *candidates* without those that are sure to lose a tie.

        Idle workers of one degree with one prefix offer the same, and the first of them wins.
        """
        outstanding = self._ledger.outstanding()
        receiving = _NOBODY if pulls is None else pulls.receiving
        seen: set[tuple[int, Blocks]] = set()
        kept = []
        for worker in candidates:
            if outstanding[worker.place] == 0 and not (receiving and worker.group in receiving):
                kind = (worker.group[1], held[worker.place])
                if kind in seen:
                    continue
                seen.add(kind)
            kept.append(worker)
        return kept

    def _promises(self, request: Request, held: Sequence[Blocks]) -> Mapping[int, list[Promise]]:
        pending = self._ledger.pending
        if not self._policy.pending_prefix or not len(pending):
            return _NO_PROMISES
        return pending.promises(request.block_keys or (), held)

    def _pulls(self, request: Request, held: Sequence[Blocks], now: Nanoseconds) -> Pulls | None:
        return self._puller.look(request, held, now) if self._policy.pull else None

    def _inquire(
        self,
        request: Request,
        held: Sequence[Blocks],
        candidates: Sequence[WorkerState],
        promises: Mapping[int, list[Promise]],
        pulls: Pulls | None,
        now: Nanoseconds,
    ) -> "_Inquiry":
        prices = Prices(self._prefill_time, request.input_tokens, self._block_tokens, candidates)
        return _Inquiry(
            self._policy, self._costs, self._ledger, prices, request.arrival_ns, now, held, promises, pulls
        )


class _Inquiry:
    """What one request asks of every worker at one instant."""

    def __init__(
        self,
        policy: VertumnusPolicy,
        costs: ExternalityCosts,
        ledger: Ledger,
        prices: Prices,
        arrival_ns: Nanoseconds,
        now: Nanoseconds,
        held: Sequence[Blocks],
        promises: Mapping[int, list[Promise]],
        pulls: Pulls | None,
    ) -> None:
        self._costs = costs
        self._ledger = ledger
        self._queues = ledger.queues
        self._price_at = prices.at
        self._now = now
        self._held = held
        self._promises = promises
        self._pulls = pulls
        self._reach = -1 if pulls is None else pulls.best
        self._receiving = _NOBODY if pulls is None else pulls.receiving
        self._idle: dict[tuple[int, Blocks], tuple[Nanoseconds, Nanoseconds, Nanoseconds]] = {}
        self._is_shortest_first = policy.shortest_first
        # the order of s - ageing*waited, as a constant: both sides of a comparison age alike
        self._aged = int(policy.ageing * arrival_ns) if policy.shortest_first else arrival_ns
        self._outstanding = None if policy.remaining_queue else ledger.outstanding()
        self._ends = ledger.ends()

    def floor(self, worker: WorkerState) -> Nanoseconds:
        """Return a cost that no offer of *worker* is below, its queue not looked at [ns]."""
        place = worker.place
        wait, held, promised = self._wait(place), self._held[place], self._promises.get(place)
        kind = (worker.group[1], held if promised is None else promised[-1].blocks)
        idle = self._idle.get(kind)
        if idle is None:
            idle = self._idle[kind] = self._idle_costs(*kind)
        here, ready, fetched = idle
        if self._pulls is not None and held < self._reach and worker.group in self._receiving:
            ready = self._pulls.receiver_fetch_ns(worker.group, held)
        return min(wait + here, (wait if wait > ready else ready) + fetched)

    def bound(self, worker: WorkerState) -> Nanoseconds:
        """Return a cost that no offer of *worker* is below, closer than `floor` [ns]."""
        place, degree = worker.place, worker.group[1]
        held, reach = self._held[place], self._reach
        if place in self._promises:
            return self.floor(worker)
        bound = self._cost(place, degree, held)
        if self._pulls is not None and held < reach:
            ready = self._fetch(self._pulls, worker.group, held)
            bound = min(bound, self._cost(place, degree, reach, ready))
        return bound

    def best(self, worker: WorkerState) -> Offer:
        """Return the cheapest offer of *worker*: with what it holds, with what is promised, with a pull."""
        held = self._held[worker.place]
        resident = self._offer(worker, held)
        choices = [resident]
        for blocks, bringer in self._promises.get(worker.place, ()):
            choices.append(self._offer(worker, blocks, blocks - held, bringer))
        if self._pulls is not None:
            pull = self._pulls.price(worker, held, resident.queue_ns, resident.service_ns)
            if pull is not None:
                choices.append(self._pulled(worker, pull))
        return resident if len(choices) == 1 else min(choices, key=self._costs.of)

    def _fetch(self, pulls: Pulls, group: CpGroup, held: Blocks) -> Nanoseconds:
        is_receiver = group in self._receiving
        return pulls.receiver_fetch_ns(group, held) if is_receiver else pulls.fetch_ns(held)

    def _cost(self, place: int, degree: int, blocks: Blocks, ready: Nanoseconds = 0) -> Nanoseconds:
        """Return J of the offer with *blocks* cached, which starts no sooner than in *ready* [ns]."""
        _, service, extra = self._price_at(degree, blocks)
        wait, behind = self._queues[place].place(self._priority(service))
        start = max(ready, self._wait(place, wait))
        return self._costs.j(start, service, extra, service * behind)

    def _idle_costs(self, degree: int, held: Blocks) -> tuple[Nanoseconds, Nanoseconds, Nanoseconds]:
        """Return J at an idle worker with *held* blocks, the time to fetch more, and J after that [ns]."""
        here = self._unloaded(degree, held)
        if self._pulls is None or held >= self._reach:
            return here, 0, here
        return here, self._pulls.fetch_ns(held), self._unloaded(degree, self._reach)

    def _unloaded(self, degree: int, blocks: Blocks) -> Nanoseconds:
        _, service, extra = self._price_at(degree, blocks)
        return self._costs.j(0, service, extra, 0)

    def _priority(self, service_ns: Nanoseconds) -> int:
        return service_ns + self._aged if self._is_shortest_first else self._aged

    def _wait(self, place: int, queued_ns: Nanoseconds = 0) -> Nanoseconds:
        """Return the wait at a worker behind *queued_ns* of its queue [ns]."""
        if self._outstanding is not None:
            return self._outstanding[place]
        end = self._ends[place]
        return queued_ns + end - self._now if end > self._now else queued_ns

    def _offer(
        self, worker: WorkerState, blocks: Blocks, pending: Blocks = 0, bringer: RequestId | None = None
    ) -> Offer:
        """Return the offer of *worker* with *blocks* cached, the last *pending* of them by *bringer*."""
        place, group = worker.place, worker.group
        cached, service, extra = self._price_at(group[1], blocks)
        priority = self._priority(service)
        ahead = None if bringer is None else self._ledger.queued_priority(bringer)
        if ahead is not None and ahead > priority:
            priority = ahead  # right after the one that brings the blocks
        wait, behind = self._queues[place].place(priority)
        after = None if ahead is None else bringer
        queue = self._wait(place, wait)
        return Offer(group, cached, queue, service, extra, service * behind, pending, priority, after)

    def _pulled(self, worker: WorkerState, pull: Pull) -> Offer:
        """Return the offer of *worker* with the blocks that *pull* brings."""
        offer = self._offer(worker, pull.blocks)
        return offer._replace(queue_ns=max(offer.queue_ns, pull.ready_ns - self._now), pull=pull)
