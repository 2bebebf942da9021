"""A request's way through the control plane: placed on arrival, again when it comes back, or later (D6).

A request is open from its arrival to its end. Whoever is placed has its work reserved at once, and what it
lacks there on its way.
"""

from typing import Literal

from msgspec import Struct

from vertumnus.domain.facts import RequestArrived, RequestCancelled, RequestEnded, RequestsReturned
from vertumnus.domain.orders import AnyOrder, Cancel, Prefill, Reject
from vertumnus.domain.request import Request
from vertumnus.domain.units import Nanoseconds, RequestId
from vertumnus.domain.wording import counted
from vertumnus.policy.admission import Admission
from vertumnus.policy.composer import Books, Composer
from vertumnus.policy.offers import Eligible
from vertumnus.policy.placement import Decision, Offer
from vertumnus.policy.placer import Placer
from vertumnus.policy.prefix.index import Match
from vertumnus.policy.recent import RecentArrivals
from vertumnus.policy.waiting import Waiting


class Placed(Struct, gc=False):
    """A request that has arrived and not ended."""

    request: Request
    attempt: int = 0
    is_reuse_counted: bool = False
    is_routed: bool = False


class Requests:
    """All open requests."""

    def __init__(
        self, books: Books, placer: Placer, composer: Composer, admission: Admission, max_attempts: int
    ) -> None:
        """Place by *placer* in the pool of *books*, each request up to *max_attempts* times."""
        self._pool, self._ledger, self._prefixes = books.pool, books.ledger, books.prefixes
        self._index, self._statistics = books.prefixes.index, books.prefixes.statistics
        self._placer = placer
        self._composer = composer
        self._admission = admission
        self._max_attempts = max_attempts
        self._waiting = Waiting()
        self.recent = RecentArrivals()
        """As the last of them found the prefix index; a forecast reads it."""
        self.open: dict[RequestId, Placed] = {}

    def arrived(self, fact: RequestArrived) -> list[AnyOrder]:
        """Open a request and place it."""
        request = fact.request
        placed = self.open[request.request_id] = Placed(request)
        match = self._index.match(request.block_keys or ())
        self.recent.note(request, match.known)
        among = self._placer.eligible(request, match.held)
        decision = self._placer.decide(request, 0, among, fact.at)
        if decision.offers and match.known:
            self._count_missed(request, among, match)
        return self._orders(placed, match, decision, fact.at)

    def cancelled(self, fact: RequestCancelled) -> list[AnyOrder]:
        """Pass a wish on, unless its request has ended."""
        return [Cancel(fact.request_id)] if fact.request_id in self.open else []

    def returned(self, fact: RequestsReturned) -> list[AnyOrder]:
        """Place again who came back, or give up who was placed too often."""
        returned = [self.open[request_id] for request_id in fact.request_ids]
        for placed in returned:  # all before the first is placed: it would count on what the others held
            request_id = placed.request.request_id
            self._ledger.release(request_id)
            self._admission.returned(request_id)
            placed.attempt += fact.is_failure
        return [order for placed in returned for order in self._place_or_end(placed, fact)]

    def place_waiting(self, now: Nanoseconds) -> list[AnyOrder]:
        """Place who found no worker before."""
        return [
            order
            for request_id in self._waiting.take_all()
            for order in self._place_again(self.open[request_id], now)
        ]

    def ended(self, fact: RequestEnded) -> list[AnyOrder]:
        """Forget a request, whatever it had reserved or waited for."""
        self._ledger.release(fact.request_id)
        self._admission.ended(fact.request_id)
        self._waiting.discard(fact.request_id)
        del self.open[fact.request_id]
        return []

    def prefilled(self, request_id: RequestId, now: Nanoseconds) -> None:
        """Release what a request had reserved: its prompt is computed."""
        self._ledger.release(request_id)
        self._admission.prefilled(request_id, now)

    def _place_or_end(self, placed: Placed, fact: RequestsReturned) -> list[AnyOrder]:
        if not fact.is_final and placed.attempt < self._max_attempts:
            return self._place_again(placed, fact.at)
        reason = f"placed {counted(placed.attempt, 'time')}, last returned: {fact.reason}"
        return [Reject(placed.request.request_id, "failed", reason)]

    def _place_again(self, placed: Placed, now: Nanoseconds) -> list[AnyOrder]:
        request = placed.request
        match = self._index.match(request.block_keys or ())
        among = self._placer.eligible(request, match.held)
        decision = self._placer.decide(request, placed.attempt, among, now)
        return self._orders(placed, match, decision, now)

    def _orders(self, placed: Placed, match: Match, decision: Decision, now: Nanoseconds) -> list[AnyOrder]:
        request = placed.request
        if decision.chosen is None:
            return self._without_worker(placed, decision)
        offer = decision.offers[decision.chosen]
        verdict = self._admission.judge(request, offer, now)
        if verdict.kind == "reject":
            return [self._admission.refusal(request, verdict)]
        held = match.held[self._pool.workers[offer.worker].place]
        priority = request.arrival_ns if offer.priority is None else offer.priority
        priority += self._admission.deferral(verdict)
        brings = (request.block_keys or ())[held:] if self._placer.counts_pending else ()
        self._ledger.reserve(
            request.request_id,
            offer.worker,
            offer.service_ns,
            priority,
            request.input_tokens - offer.cached_tokens,
            brings,
        )
        self._count_routed(placed, offer)
        fetch = self._prefixes.fetch(request, offer, match, now)
        prefill = Prefill(
            request.request_id,
            placed.attempt,
            offer.worker,
            priority,
            () if offer.after is None else (offer.after,),
            offer.service_ns,
            offer.cached_tokens,
            None if fetch is None else fetch.transfer_id,
        )
        if fetch is not None:
            return [prefill] if fetch.order is None else [fetch.order, prefill]
        copy = self._prefixes.prefetch(request, offer, match, now)
        return [prefill] if copy is None else [copy, prefill]

    def _without_worker(self, placed: Placed, decision: Decision) -> list[AnyOrder]:
        request_id = placed.request.request_id
        if self._composer.is_changing:
            self._waiting.add(request_id)  # what the transition makes may hold it
            return []
        why = "; ".join(f"worker {worker}: {reason}" for worker, reason in decision.excluded)
        status: Literal["failed", "rejected"] = "failed" if placed.attempt else "rejected"
        return [Reject(request_id, status, f"no worker can serve it ({why})")]

    def _count_routed(self, placed: Placed, offer: Offer) -> None:
        controller = self._composer.controller
        if controller is not None and not placed.is_routed:  # D(k) keeps the first placement's value (D4)
            placed.is_routed = True
            uncached = placed.request.input_tokens - offer.cached_tokens
            controller.note_routed(offer.worker.degree, uncached, offer.cached_tokens, offer.service_ns)

    def _count_missed(self, request: Request, among: Eligible, match: Match) -> None:
        longest = among.longest()
        if min(longest.values()) == match.known:
            return  # no degree lacks any of it, whichever is preferred
        preference = self._prefixes.preference(longest, match)
        degree = self._placer.preferred_degree(among.prices, preference)
        held = max([match.held[state.place] for state in self._pool.at_degree(degree)])
        if held < match.known:
            self._statistics.count_missed(request, match.known, held, degree)
