"""One request, one decision: candidates, their offers, their costs, the least of them (sec. 5.2-5.3)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request, blocks_for
from vertumnus.domain.units import Blocks, Nanoseconds, RequestId, Tokens
from vertumnus.policy.candidates import eligible
from vertumnus.policy.config import PaperPolicy, PolicyConfig, VertumnusPolicy
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.offers import Eligible, Pricer, Prices
from vertumnus.policy.placement import Decision, Observer, cheapest
from vertumnus.policy.policies.paper import PublishedCosts
from vertumnus.policy.policies.rules import cost_rule
from vertumnus.policy.pool import PoolState
from vertumnus.policy.prefix.pull import Puller
from vertumnus.policy.queue_offers import QueuePricer


class Placer:
    """Applies a policy to the pool as it is; changes nothing in it."""

    def __init__(
        self,
        policy: PolicyConfig,
        pool: PoolState,
        ledger: Ledger,
        prefill_time: PrefillTimeModel,
        block_tokens: Tokens,
        puller: Puller,
        observer: Observer | None,
    ) -> None:
        """Place by *policy*; *observer* is shown the decisions that it wants."""
        self._pool = pool
        self._ledger = ledger
        self._prefill_time = prefill_time
        self._block_tokens = block_tokens
        self._puller = puller
        self._observer = observer
        self.retune(policy)

    @property
    def config(self) -> PolicyConfig:
        """The policy, with the parameters in force."""
        return self._policy

    def retune(self, policy: PolicyConfig) -> None:
        """Place by *policy* from now on; what was placed stays where it is."""
        published = policy if isinstance(policy, PaperPolicy | VertumnusPolicy) else PaperPolicy()
        self._policy = policy
        self._costs = cost_rule(policy, self._ledger)
        self._pricer = self._pricer_of(policy)
        self.counts_pending = isinstance(policy, VertumnusPolicy) and policy.pending_prefix
        """Whether it matters what placed requests will leave at their workers."""
        self._published_costs = PublishedCosts(published.beta, published.gpu_time_weight)

    def watch(self, observer: Observer | None) -> None:
        """Show *observer* the decisions that it wants from now on."""
        self._observer = observer

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy takes along: all but the observer, who watches this one only."""
        return {**self.__dict__, "_observer": None}

    def eligible(self, request: Request, held: Sequence[Blocks]) -> Eligible:
        """Return who may serve *request* now, and why the others may not.

        *held* are the prompt's leading blocks at each worker, by its place.
        """
        length, block_tokens = request.input_tokens, self._block_tokens
        candidates, excluded = eligible(self._pool.workers.values(), blocks_for(length, block_tokens))
        if excluded:
            kinds = [(worker.group[1], held[worker.place]) for worker in candidates]
        else:
            kinds = list(zip(self._pool.degrees, held, strict=True))
        smallest = min(kinds)[0] if kinds else 0
        prices = Prices(self._prefill_time, length, block_tokens, smallest)
        return Eligible(candidates, excluded, held, kinds, prices)

    def decide(self, request: Request, attempt: int, among: Eligible, now: Nanoseconds) -> Decision:
        """Choose a worker *among* those."""
        observer = self._observer_of(request.request_id)
        costs: tuple[Nanoseconds | None, ...]
        if observer is None and among.candidates and isinstance(self._pricer, QueuePricer):
            offers, costs = self._pricer.contenders(request, among, now)
        else:
            offers = self._pricer.offers(request, among, now)
            costs = tuple(self._costs(request, offers)) if offers else ()
        chosen = cheapest(offers, costs)
        decision = Decision(now, request.request_id, attempt, offers, costs, among.excluded, chosen)
        if observer is not None:
            observer.take(decision)
        return decision

    def _observer_of(self, request_id: RequestId) -> Observer | None:
        observer = self._observer
        wanted = observer is not None and (observer.wants is None or observer.wants(request_id))
        return observer if wanted else None

    def _pricer_of(self, policy: PolicyConfig) -> QueuePricer | Pricer:
        if isinstance(policy, VertumnusPolicy):
            return QueuePricer(policy, self._ledger, self._puller)
        return Pricer(self._ledger, _queue_estimate(policy))

    def preferred_degree(self, prices: Prices, longest: Mapping[int, Blocks]) -> int:
        """Return the degree that the published cost prefers without the load term (sec. 7.1).

        Each degree, in ascending order, is taken with the *longest* prefix that it may count on.
        """
        costs = {}
        for kind in longest.items():
            price = prices[kind]
            costs[kind[0]] = self._published_costs.unloaded(price.service_ns, price.extra_gpu_ns)
        return min(costs, key=costs.__getitem__)  # the smaller degree wins a tie


def _queue_estimate(policy: PolicyConfig) -> Literal["outstanding", "remaining"]:
    return policy.queue_estimate if isinstance(policy, PaperPolicy) else "outstanding"
