"""What a pool can serve of a given stream, for loads that are told as a share of it."""

from collections.abc import Iterable

from vertumnus.domain.cluster import Composition
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND
from vertumnus.trace.oracle import OracleCache


def capacity_rate(
    requests: Iterable[Request],
    prefill_time: PrefillTimeModel,
    composition: Composition,
    block_tokens: int,
    cores: int | None = None,
) -> float:
    """Return the rate at which every worker would be busy all the time [req/s].

    Each worker is taken to serve the mean request of the stream at its own degree, with the prefix
    that an unlimited cache would hold: an upper bound for any real cache and routing. Ranks that
    share fewer *cores* than there are of them do proportionally less.
    """
    oracle = OracleCache(block_tokens)
    sizes = [(request.input_tokens, oracle.reusable_tokens(request) or 0) for request in requests]
    if not sizes:
        raise ValueError("the capacity for no request is undefined")
    mean_ns = {
        degree: sum(prefill_time.predict(degree, length - cached, cached) for length, cached in sizes)
        / len(sizes)
        for degree in composition.counts()
    }
    rate = sum(SECOND / mean_ns[worker.degree] for worker in composition.workers)
    ranks = sum(worker.degree for worker in composition.workers)
    return rate if cores is None else rate * min(1.0, cores / ranks)
