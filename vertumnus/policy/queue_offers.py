"""Offers of `policy=vertumnus`: the place in each queue, the prefix that will be there by then (D3, D4)."""

from collections.abc import Collection, Mapping, Sequence

from vertumnus.domain.cluster import CpGroup
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks, Nanoseconds
from vertumnus.policy.candidates import WorkerState
from vertumnus.policy.contenders import contenders
from vertumnus.policy.inquiry import NOBODY, Inquiry
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.offers import Eligible, Kind
from vertumnus.policy.placement import Offer
from vertumnus.policy.policies.vertumnus import ExternalityCosts, VertumnusPolicy
from vertumnus.policy.prefix.pending import Promise
from vertumnus.policy.prefix.pull import Puller

_NO_PROMISES: Mapping[int, list[Promise]] = {}


class QueuePricer:
    """Prices candidates by what waits there already and what that will leave behind."""

    def __init__(self, policy: VertumnusPolicy, ledger: Ledger, puller: Puller) -> None:
        self._policy = policy
        self._costs = ExternalityCosts(policy)
        self._ledger = ledger
        self._puller = puller

    def offers(self, request: Request, among: Eligible, now: Nanoseconds) -> tuple[Offer, ...]:
        """Return the best offer of each candidate."""
        return tuple(map(self._inquire(request, among, now).best, among.candidates))

    def contenders(
        self, request: Request, among: Eligible, now: Nanoseconds
    ) -> tuple[tuple[Offer, ...], tuple[Nanoseconds, ...]]:
        """Return as few of `offers` as show which of all is the cheapest, and their costs."""
        inquiry = self._inquire(request, among, now)
        candidates, kinds = among.candidates, among.kinds
        outstanding = self._ledger.outstanding()
        if not all(outstanding):
            candidates, kinds = _distinct(candidates, kinds, outstanding, inquiry.receiving)
        return contenders(candidates, inquiry.bounds(candidates, kinds), inquiry.best, self._costs.of)

    def _promises(self, request: Request, held: Sequence[Blocks]) -> Mapping[int, list[Promise]]:
        pending = self._ledger.pending
        if not self._policy.pending_prefix or not len(pending):
            return _NO_PROMISES
        return pending.promises(request.block_keys or (), held)

    def _inquire(self, request: Request, among: Eligible, now: Nanoseconds) -> Inquiry:
        policy, ledger, arrival = self._policy, self._ledger, request.arrival_ns
        pulls = self._puller.look(request, among.held, now) if policy.pull else None
        return Inquiry(
            policy,
            self._costs,
            ledger,
            among.prices,
            now,
            # the order of s - ageing*waited, as a constant: both sides of a comparison age alike
            int(policy.ageing * arrival) if policy.shortest_first else arrival,
            ledger.until_idle(now) if policy.remaining_queue else ledger.outstanding(),
            among.held,
            self._promises(request, among.held),
            pulls,
            NOBODY if pulls is None else pulls.receiving,
            {},
        )


def _distinct(
    candidates: Sequence[WorkerState],
    kinds: Sequence[Kind],
    outstanding: Sequence[Nanoseconds],
    receiving: Collection[CpGroup],
) -> tuple[list[WorkerState], list[Kind]]:
    """Return *candidates* and their *kinds* without those that are sure to lose a tie.

    Idle workers of one degree with one prefix offer the same, and the first of them wins.
    """
    seen: set[Kind] = set()
    kept = []
    for worker, kind in zip(candidates, kinds, strict=True):
        if not outstanding[worker.place] and worker.group not in receiving:
            if kind in seen:
                continue
            seen.add(kind)
        kept.append((worker, kind))
    return [worker for worker, _ in kept], [kind for _, kind in kept]
