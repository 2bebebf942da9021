"""What one request asks of every worker at one instant: its best offer there, and a bound on what that costs.

What does not depend on a worker's queue is worked out once for each degree and prefix (D3, D4).
"""

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import Blocks, Nanoseconds, RequestId
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.offers import Kind, Prices
from vertumnus.policy.placement import Offer
from vertumnus.policy.policies.vertumnus import ExternalityCosts, VertumnusPolicy
from vertumnus.policy.prefix.pending import Promise
from vertumnus.policy.prefix.pull import Pull, Pulls

NOBODY: frozenset[CpGroup] = frozenset()


class Terms(Struct, frozen=True, gc=False):
    """What an offer costs at a degree with so much of a prefix, whatever waits at its worker."""

    priority: int
    """In the worker's queue."""
    unloaded_ns: Nanoseconds
    """J of an offer that waits for nobody and delays nobody."""
    delay_ns: Nanoseconds
    """What J has more for each job that is delayed."""


class Choice(Struct, frozen=True, gc=False):
    """The two prefixes that a worker may offer when nothing is promised there."""

    terms: Terms
    """With what the best holder holds, if that makes the prefill shorter, else with what the worker holds."""
    ready_ns: Nanoseconds = 0
    """How long the copy would take, were nothing on its way to the worker."""
    instead: Terms | None = None
    """With what the worker holds, where that is not `terms`."""


class Inquiry(Struct, gc=False):
    """What one request asks of every worker at one instant."""

    policy: VertumnusPolicy
    costs: ExternalityCosts
    ledger: Ledger
    prices: Prices
    now: Nanoseconds
    aged: int
    """What a job's priority has beside its service time: its age, as a constant."""
    waits: Sequence[Nanoseconds]
    """Without the queue where the policy counts that job by job, by place [ns]."""
    held: Sequence[Blocks]
    """Leading blocks of the prompt, by place."""
    promises: Mapping[int, list[Promise]]
    """By place."""
    pulls: Pulls | None
    receiving: Collection[CpGroup]
    """Workers that blocks are on their way to."""
    known: dict[Kind, Terms]
    """What was worked out already."""

    def bounds(self, candidates: Sequence[WorkerState], kinds: Sequence[Kind]) -> list[Nanoseconds]:
        """Return for each worker a cost that no offer of it is below, a close one without promises [ns]."""
        promises, receiving = self.promises, self.receiving
        choice_of = {kind: self._choose(kind) for kind in set(kinds)}.__getitem__
        waits, queues, counts_jobs = self.waits, self.ledger.queues, self.policy.remaining_queue
        bounds = []
        for worker, choice in zip(candidates, map(choice_of, kinds), strict=True):
            place = worker.place
            if place in promises:
                bounds.append(self._promised_bound(worker))
                continue
            if receiving and worker.group in receiving:
                bounds.append(self._receiver_bound(worker))
                continue
            terms = choice.terms
            queue = queues[place]
            wait = waits[place]
            jobs = queue.priorities
            before = bisect_right(jobs, terms.priority)
            if counts_jobs:
                wait += queue.sums[before]
            bound = wait + terms.unloaded_ns + terms.delay_ns * (len(jobs) - before)
            instead = choice.instead
            if instead is not None:
                if choice.ready_ns > wait:
                    bound += choice.ready_ns - wait
                if wait + instead.unloaded_ns < bound:  # being longer, it waits for no less
                    bound = min(bound, self._cost(place, instead))
            bounds.append(bound)
        return bounds

    def best(self, worker: WorkerState) -> Offer:
        """Return the cheapest offer of *worker*: with what it holds, with what is promised, with a pull."""
        held = self.held[worker.place]
        resident = self._offer(worker, held)
        choices = [resident]
        for promise in self.promises.get(worker.place, ()):
            choices.append(self._offer(worker, promise.blocks, promise.blocks - held, promise.by))
        if self.pulls is not None:
            pull = self.pulls.price(worker, held, resident.queue_ns, resident.service_ns)
            if pull is not None:
                choices.append(self._pulled(worker, pull))
        return resident if len(choices) == 1 else min(choices, key=self.costs.of)

    def _promised_bound(self, worker: WorkerState) -> Nanoseconds:
        """Return a bound for a worker whose offers may have to wait for those that bring the blocks [ns].

        Each prefix is looked at: one that is longer may cost more, as a correction differs by size, and
        having any prefix has a price of its own.
        """
        place, degree, pulls = worker.place, worker.group[1], self.pulls
        wait, held = self._wait(place), self.held[place]
        costs = [wait + self._terms((degree, promise.blocks)).unloaded_ns for promise in self.promises[place]]
        costs.append(wait + self._terms((degree, held)).unloaded_ns)
        if pulls is not None and held < pulls.best:
            ready_ns, blocks, _ = pulls.fetched(worker.group, held)
            costs.append(max(wait, ready_ns - self.now) + self._terms((degree, blocks)).unloaded_ns)
        return min(costs)

    def _receiver_bound(self, worker: WorkerState) -> Nanoseconds:
        """Return a bound for a worker that blocks are on their way to [ns]."""
        place, degree, pulls = worker.place, worker.group[1], self.pulls
        held = self.held[place]
        cost = self._cost(place, self._terms((degree, held)))
        if pulls is None or held >= pulls.best:
            return cost
        ready_ns, blocks, _ = pulls.fetched(worker.group, held)
        return min(cost, self._cost(place, self._terms((degree, blocks)), ready_ns - self.now))

    def _choose(self, kind: Kind) -> Choice:
        """Return what workers may offer that are of a degree and hold so much of the prefix."""
        (degree, held), pulls = kind, self.pulls
        here = self._terms(kind)
        if pulls is None or held >= pulls.best:
            return Choice(here)
        fetched = self._terms((degree, pulls.best))
        if fetched.priority > here.priority:
            return Choice(here)  # no copy is offered that makes the prefill longer
        return Choice(fetched, pulls.fetch_ns(held), here)

    def _terms(self, kind: Kind) -> Terms:
        terms = self.known.get(kind)
        if terms is None:
            price = self.prices[kind]
            service = price.service_ns
            priority = service + self.aged if self.policy.shortest_first else self.aged
            unloaded = self.costs.unloaded(service, price.extra_gpu_ns)
            delay = service if self.policy.externality else 0
            terms = self.known[kind] = Terms(priority, unloaded, delay)
        return terms

    def _cost(self, place: int, terms: Terms, ready_ns: Nanoseconds = 0) -> Nanoseconds:
        """Return J of an offer on *terms* that starts in *ready_ns* at the earliest [ns]."""
        before, behind = self.ledger.queues[place].place(terms.priority)
        return max(self._wait(place, before), ready_ns) + terms.unloaded_ns + terms.delay_ns * behind

    def _wait(self, place: int, queued_ns: Nanoseconds = 0) -> Nanoseconds:
        """Return the wait at a worker behind *queued_ns* of its queue [ns]."""
        return self.waits[place] + queued_ns if self.policy.remaining_queue else self.waits[place]

    def _offer(
        self, worker: WorkerState, blocks: Blocks, pending: Blocks = 0, bringer: RequestId | None = None
    ) -> Offer:
        """Return the offer of *worker* with *blocks* cached, the last *pending* of them by *bringer*."""
        place, group = worker.place, worker.group
        price = self.prices[group[1], blocks]
        cached, service, extra = price.cached_tokens, price.service_ns, price.extra_gpu_ns
        priority = service + self.aged if self.policy.shortest_first else self.aged
        ahead = None if bringer is None else self.ledger.queued_priority(bringer)
        if ahead is not None and ahead > priority:
            priority = ahead  # right after the one that brings the blocks
        before, behind = self.ledger.queues[place].place(priority)
        queue, after = self._wait(place, before), None if ahead is None else bringer
        return Offer(group, cached, queue, service, extra, service * behind, pending, priority, after)

    def _pulled(self, worker: WorkerState, pull: Pull) -> Offer:
        """Return the offer of *worker* with the blocks that *pull* brings."""
        offer = self._offer(worker, pull.blocks)
        return offer._replace(queue_ns=max(offer.queue_ns, pull.ready_ns - self.now), pull=pull)
