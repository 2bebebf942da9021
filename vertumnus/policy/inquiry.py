"""What one request asks of every worker at one instant: its best offer there, and a bound on what that costs.

What does not depend on a worker's queue is worked out once for each degree and prefix (D3, D4).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.units import Blocks, Nanoseconds, RequestId, Tokens
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.offers import Prices
from vertumnus.policy.placement import Offer
from vertumnus.policy.policies.vertumnus import ExternalityCosts, VertumnusPolicy
from vertumnus.policy.prefix.pending import Promise
from vertumnus.policy.prefix.pull import Pull, Pulls

NOBODY: frozenset[CpGroup] = frozenset()


class Terms(NamedTuple):
    """What an offer costs at a degree with so much of a prefix, whatever waits at its worker."""

    cached_tokens: Tokens
    service_ns: Nanoseconds
    extra_gpu_ns: Nanoseconds
    priority: int
    """In the worker's queue."""
    unloaded_ns: Nanoseconds
    """J of an offer that waits for nobody and delays nobody."""
    delay_ns: Nanoseconds
    """What J has more for each job that is delayed."""


class Choice(NamedTuple):
    """The two prefixes that a worker may offer when nothing is promised there."""

    here: Terms
    """With what it holds."""
    fetched: Terms | None
    """With what the best holder holds; None where that is no more, or pulls are off."""
    ready_ns: Nanoseconds
    """How long the copy would take, were nothing on its way to the worker."""


class Inquiry:
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
        self._receiving = NOBODY if pulls is None else pulls.receiving
        self._known: dict[tuple[int, Blocks], Terms] = {}
        self._choices: dict[tuple[int, Blocks], Choice] = {}
        self._is_shortest_first = policy.shortest_first
        # the order of s - ageing*waited, as a constant: both sides of a comparison age alike
        self._aged = int(policy.ageing * arrival_ns) if policy.shortest_first else arrival_ns
        self._outstanding = None if policy.remaining_queue else ledger.outstanding()
        self._ends = ledger.ends()

    def bound(self, worker: WorkerState) -> Nanoseconds:
        """Return a cost that no offer of *worker* is below, a close one where nothing is promised [ns]."""
        place, group = worker.place, worker.group
        held, promised = self._held[place], self._promises.get(place)
        if promised is not None:
            return self._promised_bound(worker, held, promised)
        here, fetched, ready = self._choice(group[1], held)
        before, behind = self._queues[place].place(here.priority)
        cost = self._wait(place, before) + here.unloaded_ns + here.delay_ns * behind
        if fetched is None:
            return cost
        if self._pulls is not None and group in self._receiving:
            ready_ns, blocks, _ = self._pulls.fetched(group, held)
            fetched, ready = self._terms(group[1], blocks), ready_ns - self._now
        before, behind = self._queues[place].place(fetched.priority)
        wait = self._wait(place, before)
        pulled = (wait if wait > ready else ready) + fetched.unloaded_ns + fetched.delay_ns * behind
        return cost if cost < pulled else pulled

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

    def _promised_bound(self, worker: WorkerState, held: Blocks, promised: Sequence[Promise]) -> Nanoseconds:
        """Return a bound for a worker whose offers may have to wait for those that bring the blocks [ns].

        Each prefix is looked at: one that is longer may cost more, as a correction differs by size, and
        having any prefix has a price of its own.
        """
        wait, degree = self._wait(worker.place), worker.group[1]
        costs = [wait + self._terms(degree, promise.blocks).unloaded_ns for promise in promised]
        costs.append(wait + self._terms(degree, held).unloaded_ns)
        if self._pulls is not None and held < self._pulls.best:
            ready_ns, blocks, _ = self._pulls.fetched(worker.group, held)
            costs.append(max(wait, ready_ns - self._now) + self._terms(degree, blocks).unloaded_ns)
        return min(costs)

    def _choice(self, degree: int, held: Blocks) -> Choice:
        choice = self._choices.get((degree, held))
        if choice is None:
            choice = self._choices[degree, held] = self._choose(degree, held)
        return choice

    def _choose(self, degree: int, held: Blocks) -> Choice:
        here, pulls = self._terms(degree, held), self._pulls
        if pulls is None or held >= pulls.best:
            return Choice(here, None, 0)
        return Choice(here, self._terms(degree, pulls.best), pulls.fetch_ns(held))

    def _terms(self, degree: int, held: Blocks) -> Terms:
        terms = self._known.get((degree, held))
        if terms is None:
            terms = self._known[degree, held] = self._work_out(degree, held)
        return terms

    def _work_out(self, degree: int, held: Blocks) -> Terms:
        cached, service, extra = self._price_at(degree, held)
        priority = service + self._aged if self._is_shortest_first else self._aged
        unloaded, delay = self._costs.j(0, service, extra, 0), self._costs.j(0, 0, 0, service)
        return Terms(cached, service, extra, priority, unloaded, delay)

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
        terms = self._terms(group[1], blocks)
        priority = terms.priority
        ahead = None if bringer is None else self._ledger.queued_priority(bringer)
        if ahead is not None and ahead > priority:
            priority = ahead  # right after the one that brings the blocks
        before, behind = self._queues[place].place(priority)
        cached, service, extra = terms[:3]
        queue, after = self._wait(place, before), None if ahead is None else bringer
        return Offer(group, cached, queue, service, extra, service * behind, pending, priority, after)

    def _pulled(self, worker: WorkerState, pull: Pull) -> Offer:
        """Return the offer of *worker* with the blocks that *pull* brings."""
        offer = self._offer(worker, pull.blocks)
        return offer._replace(queue_ns=max(offer.queue_ns, pull.ready_ns - self._now), pull=pull)
