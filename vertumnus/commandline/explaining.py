"""The verb ``explain``: why a request went to this worker, candidate by candidate, term by term."""

from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from vertumnus.commandline.columns import in_columns
from vertumnus.commandline.exit_codes import OK
from vertumnus.commandline.parser import RUN, run_parser
from vertumnus.domain.units import Nanoseconds, to_seconds
from vertumnus.domain.wording import counted
from vertumnus.policy.policies.rules import cost_unit, policy_name, weights
from vertumnus.policy.policies.why import legend, why
from vertumnus.policy.prefix.pull import Pull
from vertumnus.records.run_dir import Listing
from vertumnus.report.chosen_run import chosen_run
from vertumnus.run.explain import Candidate, Explanation, Placement, explain_run


def explain(words: Sequence[str]) -> int:
    """``explain [RUN] REQUEST``: make the placements of a request anew from the log and show what decided."""
    parser = run_parser("explain", "Why a request went where it went: all candidates, every term.")
    parser.add_argument("run", nargs="?", default="latest", help=f"{RUN}; default latest")
    parser.add_argument("request", type=_number, help="the request's number in the run")
    parser.add_argument("--json", action="store_true", help="the numbers as JSON")
    read = parser.parse_intermixed_args(list(words))
    listing = chosen_run(read.runs_dir, read.run)
    found = explain_run(listing.run, read.request)
    if read.json:
        print(msgspec.json.format(msgspec.json.encode(_plain(listing, found)), indent=2).decode())
    else:
        print("\n\n".join(_paragraphs(listing, found)))
    return OK


def _number(word: str) -> int:
    if not word.isdecimal():
        raise ArgumentTypeError(f"found {word}, must be a whole number of at least 0")
    return int(word)


# ---- text -------------------------------------------------------------------------------------------


def _paragraphs(listing: Listing, found: Explanation) -> Iterator[str]:
    request = found.request
    yield (
        f"{_execution(found)}  request {request.request_id} of run {listing.run.run_id} ({listing.name}): "
        f"{counted(request.input_tokens, 'token')}, due at {to_seconds(request.arrival_ns):.3f} s"
    )
    for number, placement in enumerate(found.placements, 1):
        yield _heading(number, placement)
        if placement.candidates:
            yield in_columns(list(_rows(placement)))
        yield f"why       {why(placement.policy, placement.decision)}"
        if placement.decision.excluded:
            yield "\n".join(f"left out  {worker}: {reason}" for worker, reason in placement.decision.excluded)
        yield "\n".join(_outcome(found, placement))
    yield from _legends(found)
    if found.is_cut:
        yield "the log's end is cut off; what came after it is not known"


def _legends(found: Explanation) -> Iterator[str]:
    """Yield what the columns mean, once for each policy that placed the request."""
    policies = {policy_name(each.policy): each.policy for each in found.placements if each.candidates}
    for name, policy in policies.items():
        title = "the columns" if len(policies) == 1 else f"the columns under {name}"
        yield "\n".join((title, in_columns([("  " + column, meaning) for column, meaning in legend(policy)])))


def _heading(number: int, placement: Placement) -> str:
    policy, charged = placement.policy, weights(placement.policy)
    how = "" if charged is None else f", beta {charged[0]:g}, lambda {charged[1]:g}"
    at = to_seconds(placement.decision.at)
    return f"placement {number} at {at:.3f} s by policy {policy_name(policy)}{how}; times in milliseconds"


def _rows(placement: Placement) -> Iterator[tuple[str, ...]]:
    unit = cost_unit(placement.policy)
    yield (
        "worker", "cached", "pending", "pulled", "wait", "service", "beta*s", "lambda*gpu", "externality",
        "cost" if unit == "ns" else f"cost [{unit}]", "hindsight", "",
    )  # fmt: skip
    for candidate in placement.candidates:
        yield _row(placement, candidate, unit)


def _row(placement: Placement, candidate: Candidate, unit: str) -> tuple[str, ...]:
    offer, terms = candidate.offer, _terms(placement, candidate)
    pull = offer.pull
    cost = "" if candidate.cost is None else _ms(candidate.cost) if unit == "ns" else f"{candidate.cost:,}"
    return (
        str(offer.worker),
        f"{offer.cached_tokens:,}",
        counted(offer.pending_blocks, "block") if offer.pending_blocks else "",
        "" if pull is None else f"{counted(pull.blocks - pull.first_block, 'block')}{_source(pull)}",
        _ms(offer.queue_ns),
        _ms(offer.service_ns),
        "" if terms is None else _ms(terms[0]),
        "" if terms is None else _ms(terms[1]),
        _ms(offer.externality_ns) if terms is not None and offer.externality_ns else "",
        cost,
        "" if candidate.hindsight_ns is None else _ms(candidate.hindsight_ns),
        _role(placement, candidate),
    )


def _role(placement: Placement, candidate: Candidate) -> str:
    if candidate == placement.chosen:
        return "chosen"
    if candidate == placement.runner_up:
        return "runner-up"
    return "left out by the policy's rule" if candidate.cost is None else ""


def _source(pull: Pull) -> str:
    return " on their way" if pull.source is None else f" from {pull.source}"


def _outcome(found: Explanation, placement: Placement) -> Iterator[str]:
    for place, line in enumerate(_what_came(found, placement)):
        yield f"{'' if place else 'outcome':10}{line}"
    if placement.regret_ns is not None and placement.chosen is not None:
        yield _regret(placement, placement.regret_ns)


def _what_came(found: Explanation, placement: Placement) -> Iterator[str]:
    chosen, outcome, at = placement.chosen, placement.outcome, placement.decision.at
    if chosen is not None and outcome.started_ns is not None:
        offer = chosen.offer
        yield (
            f"started after {_ms(outcome.started_ns - at)} ms, predicted {_ms(offer.queue_ns)}; "
            f"{counted(outcome.cached_tokens or 0, 'token')} cached, expected {offer.cached_tokens:,}"
        )
        if outcome.prefilled_ns is not None:
            took = _ms(outcome.prefilled_ns - outcome.started_ns)
            yield f"prefill {took} ms, predicted {_ms(offer.service_ns)}"
        if outcome.first_token_ns is not None:
            yield f"TTFT {_ms(outcome.first_token_ns - found.request.arrival_ns)} ms"
    yield outcome.ended or "still open where the log ends"


def _regret(placement: Placement, regret_ns: Nanoseconds) -> str:
    if regret_ns == 0:
        return "regret    none: in hindsight no worker would have been sooner"
    best = min(placement.candidates, key=lambda each: each.hindsight_ns or 0)
    return f"regret    {_ms(regret_ns)} ms: in hindsight {best.offer.worker} would have been sooner"


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:,.1f}"


def _execution(found: Explanation) -> str:
    return "SIMULATED" if found.backend == "sim" else "EXECUTED"


# ---- JSON -------------------------------------------------------------------------------------------


def _plain(listing: Listing, found: Explanation) -> dict[str, Any]:
    """Return the explanation as plain values; undefined is None, durations are seconds."""
    return {
        "run_id": listing.run.run_id,
        "execution": _execution(found).lower(),
        "request_id": found.request.request_id,
        "input_tokens": found.request.input_tokens,
        "arrival_s": to_seconds(found.request.arrival_ns),
        "placements": [_placement(placement) for placement in found.placements],
        "log_is_cut": found.is_cut,
    }


def _placement(placement: Placement) -> dict[str, Any]:
    decision, outcome = placement.decision, placement.outcome
    runner_up, chosen = placement.runner_up, placement.chosen
    return {
        "at_s": to_seconds(decision.at),
        "attempt": decision.attempt,
        "policy": policy_name(placement.policy),
        "cost_unit": cost_unit(placement.policy),
        "why": why(placement.policy, decision),
        "chosen": None if chosen is None else str(chosen.offer.worker),
        "runner_up": None if runner_up is None else str(runner_up.offer.worker),
        "candidates": [_candidate(placement, each) for each in placement.candidates],
        "excluded": {str(worker): reason for worker, reason in decision.excluded},
        "started_s": _seconds(outcome.started_ns),
        "prefilled_s": _seconds(outcome.prefilled_ns),
        "first_token_s": _seconds(outcome.first_token_ns),
        "cached_tokens": outcome.cached_tokens,
        "ended": outcome.ended,
        "regret_s": _seconds(placement.regret_ns),
    }


def _candidate(placement: Placement, candidate: Candidate) -> dict[str, Any]:
    offer, terms, pull = candidate.offer, _terms(placement, candidate), candidate.offer.pull
    return {
        "worker": str(offer.worker),
        "cached_tokens": offer.cached_tokens,
        "pending_blocks": offer.pending_blocks,
        "pulled_blocks": 0 if pull is None else pull.blocks - pull.first_block,
        "pull_source": None if pull is None or pull.source is None else str(pull.source),
        "wait_s": to_seconds(offer.queue_ns),
        "service_s": to_seconds(offer.service_ns),
        "beta_service_s": None if terms is None else to_seconds(terms[0]),
        "gpu_time_term_s": None if terms is None else to_seconds(terms[1]),
        "externality_s": to_seconds(offer.externality_ns),
        "cost": candidate.cost,
        "hindsight_s": _seconds(candidate.hindsight_ns),
    }


def _terms(placement: Placement, candidate: Candidate) -> tuple[Nanoseconds, Nanoseconds] | None:
    """Return beta*s and the GPU-time term of a candidate [ns]; None under a policy without them."""
    charged = weights(placement.policy)
    if charged is None:
        return None
    beta, gpu_time_weight = charged
    return round(beta * candidate.offer.service_ns), round(gpu_time_weight * candidate.offer.extra_gpu_ns)


def _seconds(nanoseconds: Nanoseconds | None) -> float | None:
    return None if nanoseconds is None else to_seconds(nanoseconds)
