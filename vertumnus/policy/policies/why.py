"""Why a placement came out as it did, in a sentence, and what the terms of its costs mean."""

from collections.abc import Iterator, Mapping

from vertumnus.domain.units import Nanoseconds
from vertumnus.domain.wording import counted
from vertumnus.policy.config import PolicyConfig
from vertumnus.policy.placement import Decision, Offer
from vertumnus.policy.policies.cache_first import CacheFirstPolicy
from vertumnus.policy.policies.rules import cost_unit, weights
from vertumnus.policy.policies.simple import HomoPolicy, LeastLoadedPolicy, RoundRobinPolicy
from vertumnus.policy.policies.static import StaticPolicy
from vertumnus.policy.policies.vertumnus import VertumnusPolicy

SEEN_NS = 50_000
"""The least difference that shows as 0.1 ms."""


def why(policy: PolicyConfig, decision: Decision) -> str:
    """Return one sentence that says why *decision* chose its worker, against the next best one."""
    if decision.chosen is None:
        return "no worker could take it"
    chosen = decision.offers[decision.chosen]
    other = runner_up(decision)
    if other is None:
        return f"{chosen.worker} was the only {_only(len(decision.offers))}"
    second = decision.offers[other]
    if isinstance(policy, RoundRobinPolicy):
        return f"{chosen.worker} was next in turn, {second.worker} follows"
    least, next_least = decision.costs[decision.chosen], decision.costs[other]
    assert least is not None and next_least is not None, "both were judged"
    if least == next_least:
        which = "lower first rank" if chosen.worker.degree == second.worker.degree else "smaller degree"
        return f"{chosen.worker} and {second.worker} cost the same, the least; then the {which} wins"
    unit = cost_unit(policy)
    if unit != "ns":
        return f"{chosen.worker} costs least, {least:,} {unit}, {second.worker} {next_least:,}"
    parts = "; ".join((", ".join(_differences(policy, chosen, second)), *_cached(chosen, second)))
    return f"{chosen.worker} costs least, {_ms(next_least - least)} less than {second.worker}: {parts}"


def runner_up(decision: Decision) -> int | None:
    """Return the place of the offer that would have been chosen next; None where there is no other."""
    judged = [
        (cost, offer.worker.degree, offer.worker.first_rank, place)
        for place, (cost, offer) in enumerate(zip(decision.costs, decision.offers, strict=True))
        if cost is not None and place != decision.chosen
    ]
    return min(judged)[-1] if judged else None


def charged_terms(policy: PolicyConfig, offer: Offer) -> Mapping[str, Nanoseconds]:
    """Return what the cost of *offer* adds up from, by name [ns]; nothing where costs are no times."""
    if cost_unit(policy) != "ns":
        return {}
    charged = weights(policy)
    if charged is not None:
        terms = {
            "wait": offer.queue_ns,
            "prefill": round(charged[0] * offer.service_ns),
            "GPU time": round(charged[1] * offer.extra_gpu_ns),
        }
        if isinstance(policy, VertumnusPolicy) and policy.externality:
            terms["delay of others"] = offer.externality_ns
        return terms
    if isinstance(policy, LeastLoadedPolicy):
        return {"wait": offer.queue_ns}
    return {"wait": offer.queue_ns, "prefill": offer.service_ns}


def legend(policy: PolicyConfig) -> Iterator[tuple[str, str]]:
    """Yield the columns of an explanation under *policy*, each with its meaning."""
    yield "cached", "tokens of the prompt that need no computing there, pending and pulled ones included"
    yield "pending", "blocks of them that requests placed there before will leave"
    yield "pulled", "blocks of them that are fetched from another worker first"
    yield "wait", "predicted time until its prefill starts there"
    yield "service", "s: predicted prefill time there"
    if weights(policy) is not None:
        yield "beta*s", "prefill as charged: service times beta (policy.beta)"
        yield (
            "lambda*gpu",
            "GPU time as charged: beyond what the smallest degree would use, times lambda (gpu_time_weight)",
        )
    if isinstance(policy, VertumnusPolicy):
        yield (
            "externality",
            "delay of others: how much longer those queued behind it would wait, together",
        )
    yield "cost", f"{_formula(policy)}; the least wins, then the smaller degree, then the lower rank"
    yield "hindsight", "wait and service, the wait until those before it were in fact done"


def _only(offers: int) -> str:
    if offers == 1:
        return "worker that could take it"
    return f"one of {counted(offers, 'candidate')} that the policy's rule allows"


def _formula(policy: PolicyConfig) -> str:
    match policy:
        case VertumnusPolicy(externality=True):
            return "wait + beta*s + lambda*gpu + externality"
        case _ if weights(policy) is not None:
            return "wait + beta*s + lambda*gpu"
        case LeastLoadedPolicy():
            return "wait"
        case HomoPolicy():
            return "wait + service"
        case StaticPolicy():
            return "wait + service, of the degree that the prompt's length picks"
        case CacheFirstPolicy():
            return "wait + service, of those that have the most cached"
        case RoundRobinPolicy():
            return "turns until it is next"
        case _:
            return f"the policy's own count [{cost_unit(policy)}]"


def _differences(policy: PolicyConfig, chosen: Offer, other: Offer) -> list[str]:
    """Return by how much each term is less or more at *chosen*, the savings first, the largest first."""
    ours, theirs = charged_terms(policy, chosen), charged_terms(policy, other)
    gaps = [(ours[name] - theirs[name], name) for name in ours]
    seen = [(gap, name) for gap, name in gaps if abs(gap) >= SEEN_NS] or [
        max(gaps, key=lambda each: abs(each[0]))
    ]
    seen.sort(key=lambda each: (each[0] > 0, -abs(each[0])))
    return [f"{name} {_ms(abs(gap))} {'less' if gap < 0 else 'more'}" for gap, name in seen]


def _cached(chosen: Offer, other: Offer) -> Iterator[str]:
    if chosen.cached_tokens != other.cached_tokens:
        yield f"cached {counted(chosen.cached_tokens, 'token')}, there {other.cached_tokens:,}"


def _ms(nanoseconds: Nanoseconds) -> str:
    return "under 0.1 ms" if nanoseconds < SEEN_NS else f"{nanoseconds / 1e6:,.1f} ms"
