"""One request, one decision: candidates, their offers, their costs, the least of them (sec. 5.2-5.3)."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request, blocks_for
from vertumnus.domain.units import Blocks, Nanoseconds, Tokens
from vertumnus.policy.candidates import eligible
from vertumnus.policy.config import PaperPolicy, PolicyConfig, VertumnusPolicy
from vertumnus.policy.ledger import Ledger
from vertumnus.policy.offers import Pricer
from vertumnus.policy.placement import Decision, cheapest
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
        observe: Callable[[Decision], None] | None,
    ) -> None:
        """Place by *policy*; *observe* is shown every decision."""
        self._pool = pool
        self._ledger = ledger
        self._prefill_time = prefill_time
        self._block_tokens = block_tokens
        self._puller = puller
        self._observe = observe
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

    def watch(self, observe: Callable[[Decision], None] | None) -> None:
        """Show *observe* every decision from now on."""
        self._observe = observe

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy takes along: all but the observer, who watches this one only."""
        return {**self.__dict__, "_observe": None}

    def decide(self, request: Request, attempt: int, held: Sequence[Blocks], now: Nanoseconds) -> Decision:
        """Choose a worker; *held* are the prompt's leading blocks at each, by the worker's place."""
        needed = blocks_for(request.input_tokens, self._block_tokens)
        candidates, excluded = eligible(self._pool.workers.values(), needed)
        offers = self._pricer.offers(request, held, candidates, now)
        costs = self._costs(request, offers) if offers else []
        chosen = cheapest(offers, costs)
        decision = Decision(now, request.request_id, attempt, offers, tuple(costs), excluded, chosen)
        if self._observe is not None:
            self._observe(decision)
        return decision

    def _pricer_of(self, policy: PolicyConfig) -> QueuePricer | Pricer:
        times, ledger, block_tokens = self._prefill_time, self._ledger, self._block_tokens
        if isinstance(policy, VertumnusPolicy):
            puller = self._puller if policy.pull else None
            return QueuePricer(policy, self._costs, times, ledger, block_tokens, puller)
        return Pricer(times, ledger, block_tokens, _queue_estimate(policy))

    def preferred_degree(self, request: Request, decision: Decision) -> int:
        """Return the degree that the published cost prefers without the load term (sec. 7.1)."""
        offers = decision.offers
        costs = self._published_costs(request, offers)
        unloaded = [
            cost - offer.queue_ns for cost, offer in zip(costs, offers, strict=True) if cost is not None
        ]
        place = cheapest(offers, unloaded)
        return offers[place or 0].worker.degree


def _queue_estimate(policy: PolicyConfig) -> Literal["outstanding", "remaining"]:
    return policy.queue_estimate if isinstance(policy, PaperPolicy) else "outstanding"
