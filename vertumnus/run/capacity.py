"""What a pool can serve of a given stream, for loads that are told as a share of it."""

from collections.abc import Iterable
from typing import NamedTuple

from vertumnus.domain.cluster import Composition
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND, Tokens
from vertumnus.trace.oracle import OracleCache


class MeanRequest(NamedTuple):
    """The stream's prefills with the prefix that an unlimited cache would hold."""

    sizes: list[tuple[Tokens, Tokens]]
    """(R, P) of each request."""

    @classmethod
    def of(cls, requests: Iterable[Request], block_tokens: Tokens) -> "MeanRequest":
        """Look at *requests* in order of arrival."""
        oracle = OracleCache(block_tokens)
        reused = [(request.input_tokens, oracle.reusable_tokens(request) or 0) for request in requests]
        return cls([(length - cached, cached) for length, cached in reused])

    def seconds(self, time: PrefillTimeModel, degree: int) -> float:
        """Return the mean predicted time at *degree* [s]."""
        total = sum(time.predict(degree, uncached, cached) for uncached, cached in self.sizes)
        return total / len(self.sizes) / SECOND


def busy_rate(mean: MeanRequest, time: PrefillTimeModel, composition: Composition) -> float:
    """Return the rate at which every worker would be busy all the time [req/s].

    Each worker is taken to serve the mean request at its own degree: an upper bound for any real
    cache and routing.
    """
    return sum(count / mean.seconds(time, degree) for degree, count in composition.counts().items())


def cores_rate(
    mean: MeanRequest, cpu_time: PrefillTimeModel, composition: Composition, cores: int, other_s: float
) -> float:
    """Return the rate at which *cores* would be busy all the time [req/s], for ranks that share them.

    *cpu_time* is one rank's CPU time; all ranks of a worker take it. Requests are taken to spread over
    the ranks evenly, each with *other_s* of work outside its prefill.
    """
    ranks = sum(worker.degree for worker in composition.workers)
    prefill_s = sum(
        degree * count / ranks * degree * mean.seconds(cpu_time, degree)
        for degree, count in composition.counts().items()
    )
    return cores / (prefill_s + other_s)
