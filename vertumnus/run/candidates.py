"""Placements as rows of the decisions table."""

from collections.abc import Iterator

from vertumnus.policy.placement import Decision
from vertumnus.records.decisions import CandidateRow


def candidate_rows(decision: Decision, cost_unit: str) -> Iterator[CandidateRow]:
    """Yield every worker that *decision* looked at: the offers, then those that were left out."""
    for place, (offer, cost) in enumerate(zip(decision.offers, decision.costs, strict=True)):
        pull = offer.pull
        yield CandidateRow(
            request_id=decision.request_id,
            attempt=decision.attempt,
            t_ns=decision.at,
            worker=offer.worker,
            cached_tokens=offer.cached_tokens,
            queue_ns=offer.queue_ns,
            service_ns=offer.service_ns,
            gpu_time_ns=offer.extra_gpu_ns,
            externality_ns=offer.externality_ns,
            pending_blocks=offer.pending_blocks,
            pulled_blocks=0 if pull is None else pull.blocks - pull.first_block,
            pull_source=None if pull is None else pull.source,
            after_request=offer.after,
            cost=cost,
            cost_unit=cost_unit,
            chosen=place == decision.chosen,
            excluded_reason=None if cost is not None else "left out by the policy's rule",
        )
    for worker, reason in decision.excluded:
        yield CandidateRow(
            request_id=decision.request_id,
            attempt=decision.attempt,
            t_ns=decision.at,
            worker=worker,
            cached_tokens=None,
            queue_ns=None,
            service_ns=None,
            gpu_time_ns=None,
            externality_ns=None,
            pending_blocks=None,
            pulled_blocks=None,
            pull_source=None,
            after_request=None,
            cost=None,
            cost_unit=cost_unit,
            chosen=False,
            excluded_reason=reason,
        )
