"""Offers of `policy=vertumnus`: the place in each queue, the prefix that will be there by then (D3, D4)."""

from collections.abc import Mapping, Sequence

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request
from vertumnus.domain.units import Blocks, Nanoseconds, Tokens
from vertumnus.policy.candidates import WorkerState, smallest_degree
from vertumnus.policy.contenders import contenders
from vertumnus.policy.inquiry import NOBODY, Inquiry
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.offers import Prices
from vertumnus.policy.placement import Offer
from vertumnus.policy.policies.vertumnus import ExternalityCosts, VertumnusPolicy
from vertumnus.policy.prefix.pending import Promise
from vertumnus.policy.prefix.pull import Puller, Pulls

_NO_PROMISES: Mapping[int, list[Promise]] = {}


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
        return contenders(distinct, inquiry.bound, inquiry.best, self._costs.of)

    def _distinct(
        self, candidates: Sequence[WorkerState], held: Sequence[Blocks], pulls: Pulls | None
    ) -> list[WorkerState]:
        """Return *candidates* without those that are sure to lose a tie.

        Idle workers of one degree with one prefix offer the same, and the first of them wins.
        """
        outstanding = self._ledger.outstanding()
        receiving = NOBODY if pulls is None else pulls.receiving
        seen: set[tuple[int, Blocks]] = set()
        kept = []
        for worker in candidates:
            place = worker.place
            if not outstanding[place] and not (receiving and worker.group in receiving):
                kind = (worker.group[1], held[place])
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
    ) -> Inquiry:
        smallest = smallest_degree(candidates)
        prices = Prices(self._prefill_time, request.input_tokens, self._block_tokens, smallest)
        return Inquiry(
            self._policy, self._costs, self._ledger, prices, request.arrival_ns, now, held, promises, pulls
        )
