"""What a pool can serve of a given stream, for loads that are told as a share of it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vertumnus.config import RunConfig
from vertumnus.domain.cluster import Composition
from vertumnus.domain.prefill_time import PrefillTimeModel
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.request import Request
from vertumnus.domain.units import SECOND, Tokens
from vertumnus.sim.config import SimConfig
from vertumnus.trace.blocks import to_requests
from vertumnus.trace.load import LoadedTrace
from vertumnus.trace.oracle import OracleCache
from vertumnus.trace.rows import TraceRow


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


def pool_rate(config: RunConfig, profile: ModelProfile, trace: LoadedTrace) -> float:
    """Return the rate that would keep the pool of *config* busy with *trace* [req/s].

    That is all of its workers, or all cores of a machine whose ranks share them, whichever is lower;
    a simulated rank has a device of its own.
    """
    mean = MeanRequest.of(to_requests(trace.rows, trace.block_tokens), trace.block_tokens)
    composition = config.cluster.initial_composition()
    busy = busy_rate(mean, profile.prefill_time(), composition)
    cpu_time = profile.cpu_time()
    if isinstance(config.backend, SimConfig) or cpu_time is None or profile.cores is None:
        return busy
    return min(busy, cores_rate(mean, cpu_time, composition, profile.cores, _decode_s(profile, trace.rows)))


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


def _decode_s(profile: ModelProfile, rows: Sequence[TraceRow]) -> float:
    """Return the mean request's decode time if nothing were batched [s]."""
    return profile.decode_step_s * sum(row.output_tokens for row in rows) / len(rows)
