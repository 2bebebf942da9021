"""One request, one decision: candidates, their offers, their costs, the least of them (sec. 5.2-5.3)."""

from collections.abc import Sequence
from typing import Any, Literal

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request, blocks_for
from vertumnus.domain.units import Blocks, Nanoseconds, RequestId, Tokens
from vertumnus.policy.candidates import Eligible, WorkerState, eligible
from vertumnus.policy.config import PaperPolicy, PolicyConfig, VertumnusPolicy
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.offers import Pricer, Prices
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

    def eligible(self, request: Request) -> Eligible:
        """Return who may serve *request* now, and why the others may not."""
        return eligible(self._pool.workers.values(), blocks_for(request.input_tokens, self._block_tokens))

    def decide(
        self, request: Request, attempt: int, among: Eligible, held: Sequence[Blocks], now: Nanoseconds
    ) -> Decision:
        """Choose a worker *among* those; *held* are the prompt's leading blocks at each, by its place."""
        candidates, excluded = among
        observer = self._observer_of(request.request_id)
        if observer is None and candidates and isinstance(self._pricer, QueuePricer):
            offers = self._pricer.contenders(request, held, candidates, now)
        else:
            offers = self._pricer.offers(request, held, candidates, now)
        costs = self._costs(request, offers) if offers else []
        chosen = cheapest(offers, costs)
        decision = Decision(now, request.request_id, attempt, offers, tuple(costs), excluded, chosen)
        if observer is not None:
            observer.take(decision)
        return decision

    def _observer_of(self, request_id: RequestId) -> Observer | None:
        observer = self._observer
        wanted = observer is not None and (observer.wants is None or observer.wants(request_id))
        return observer if wanted else None

    def _pricer_of(self, policy: PolicyConfig) -> QueuePricer | Pricer:
        times, ledger, block_tokens = self._prefill_time, self._ledger, self._block_tokens
        if isinstance(policy, VertumnusPolicy):
            return QueuePricer(policy, times, ledger, block_tokens, self._puller)
        return Pricer(times, ledger, block_tokens, _queue_estimate(policy))

    def preferred_degree(
        self, request: Request, candidates: Sequence[WorkerState], held: Sequence[Blocks]
    ) -> int:
        """Return the degree that the published cost prefers without the load term (sec. 7.1).

        Each degree is taken with the longest prefix among its *candidates*, of which there is at least one.
        """
        most: dict[int, Blocks] = {}
        for worker in candidates:
            degree, blocks = worker.group[1], held[worker.place]
            if blocks > most.get(degree, -1):
                most[degree] = blocks
        prices = Prices(self._prefill_time, request.input_tokens, self._block_tokens, min(most))
        costs = self._published_costs
        return min(most, key=lambda degree: (costs.unloaded(*prices.at(degree, most[degree])[1:]), degree))


def _queue_estimate(policy: PolicyConfig) -> Literal["outstanding", "remaining"]:
    return policy.queue_estimate if isinstance(policy, PaperPolicy) else "outstanding"
