"""The largest demand that a pool serves within a target attainment: raised until it breaks (sec. 6.1).

Demand is what the controller counts: predicted seconds of the requests that arrive, as routed, per second.
Arrivals are Poisson: ticks of 20 simultaneous requests are the trace's, and meet small pools harder.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs
from rich.console import Console

from vertumnus.config import RunConfig
from vertumnus.domain.errors import ConfigError
from vertumnus.domain.profile import ModelProfile
from vertumnus.domain.units import SECOND
from vertumnus.live.config import LiveConfig
from vertumnus.policy.config import PaperPolicy
from vertumnus.policy.reconfig.config import ManualController
from vertumnus.records.config import Measurement
from vertumnus.records.folds import RunFolds
from vertumnus.records.log import read_log
from vertumnus.records.metrics import summarise
from vertumnus.records.request_record import RequestRecord
from vertumnus.run.asked import Asked
from vertumnus.run.capacity import pool_rate
from vertumnus.run.stream import Stream, load_stream
from vertumnus.run.trial import served
from vertumnus.sim.config import SimConfig
from vertumnus.trace.config import ArrivalConfig
from vertumnus.trace.history import GivenComposition
from vertumnus.workers.config import DecodeConfig

LEAST_REQUESTS, MOST_REQUESTS, REQUESTS_PER_WORKER = 2_000, 8_000, 800
"""Of the workload, for a simulated trial; fewer leave the attainment less certain than the search is fine."""
SIMULATED_STEP, SIMULATED_TOLERANCE = 1.5, 0.02
"""Factor from load to load until the target breaks, and how closely the break is then found."""
EXECUTED_STEP, EXECUTED_TOLERANCE = 1.25, 0.1
"""The same where each load is a run on this machine's ranks."""
NO_LOAD = 0.02
"""Share of a busy pool at which nobody waits."""
LEAST_LOAD, MOST_LOAD = 0.02, 8.0
"""Loads outside of this, as shares of a pool that is always busy, are not tried."""
AMPLE = DecodeConfig(ranks=1, slots_per_rank=1_000_000, tokens_per_rank=10**12)
"""A decode pool that is never the bottleneck (sec. 9.1): what is looked for is the prefill workers' limit."""
POISSON = ArrivalConfig(process="poisson", rate=1.0)


class Trial(NamedTuple):
    """One load on one pool."""

    demand: float
    """Predicted seconds of work that arrived per second."""
    attainment: float | None
    """Token-weighted; None when no request had a target."""
    load: float
    """GPU time that the requests took, over the GPU time from the first arrival to the last."""

    def holds(self, target: float) -> bool:
        """Return whether the pool could go on like this: within *target*, and without a growing queue.

        Where targets are long, a trial may end before a pool that gets too much misses them.
        """
        return (self.attainment or 0.0) >= target and self.load <= 1.0


class Capacity(NamedTuple):
    """What the trials on one pool found."""

    demand: float | None
    """Of the highest load that met the target; None when none did, or all [s of work per s]."""
    rate: float
    """Its arrival rate, or that of the last trial [req/s]."""
    attainment: float | None
    trials: int


class SimulatedPool(NamedTuple):
    """A pool in virtual time, and what it serves."""

    config: RunConfig
    stream: Stream

    @classmethod
    def of(cls, config: RunConfig, counts: Mapping[int, int]) -> "SimulatedPool":
        """Return a pool of *counts* workers by degree, otherwise as *config* says.

        Raises ConfigError as a run does when the workload cannot be had or served.
        """
        backend = config.backend if isinstance(config.backend, SimConfig) else SimConfig()
        pool = pool_of(config, counts)
        cluster = structs.replace(pool.cluster, decode=AMPLE)
        pool = structs.replace(pool, cluster=cluster, backend=backend, model=None)
        workers = sum(counts.values())
        requests = min(MOST_REQUESTS, max(LEAST_REQUESTS, REQUESTS_PER_WORKER * workers))
        longer = structs.replace(pool.workload, requests=requests)
        return cls(pool, load_stream(structs.replace(pool, workload=longer)))

    def without_load(self, profile: ModelProfile) -> float:
        """Return the attainment at a load at which nobody waits."""
        return self.trial(profile, NO_LOAD * self.busy(profile)).attainment or 0.0

    def capacity(self, profile: ModelProfile, target: float) -> Capacity:
        """Return the highest load that keeps the attainment at *target*."""
        busy = self.busy(profile)
        return find_capacity(
            lambda rate: self.trial(profile, rate),
            busy,
            busy / 2,
            SIMULATED_STEP,
            SIMULATED_TOLERANCE,
            target,
        )

    def trial(self, profile: ModelProfile, rate: float) -> Trial:
        """Serve the stream at *rate* with the times of *profile*."""
        arrival = self.config.arrival.at_rate(rate)
        at_rate = structs.replace(self.config, profile=profile, arrival=arrival)
        records = served(at_rate, self.stream)
        return judge(records, Measurement.of(self.config.records, ()), self.config.cluster.gpus)

    def busy(self, profile: ModelProfile) -> float:
        """Return the rate that keeps every worker busy all the time [req/s]."""
        return pool_rate(self.config, profile, self.stream)


def find_capacity(
    trial: Callable[[float], Trial], busy: float, start: float, step: float, tolerance: float, target: float
) -> Capacity:
    """Raise the rate from *start* by *step* until *target* breaks, then close in to within *tolerance*.

    *busy* is the rate that keeps the pool busy all the time; *start* is lowered while it fails.
    """
    tried: list[Trial] = []

    def at(rate: float) -> Trial:
        tried.append(trial(rate))
        return tried[-1]

    low, best, high = start, at(start), None
    while not best.holds(target):
        low, high = low / step, low
        if low < LEAST_LOAD * busy:
            return Capacity(None, high, best.attainment, len(tried))
        best = at(low)
    while high is None:
        if low * step > MOST_LOAD * busy:
            return Capacity(None, low, best.attainment, len(tried))
        found = at(low * step)
        low, best, high = (low * step, found, None) if found.holds(target) else (low, best, low * step)
    while high / low > 1 + tolerance:
        middle = (low * high) ** 0.5
        found = at(middle)
        low, best, high = (middle, found, high) if found.holds(target) else (low, best, middle)
    return Capacity(best.demand, low, best.attainment, len(tried))


def pool_of(config: RunConfig, counts: Mapping[int, int]) -> RunConfig:
    """Return *config* with a pool of *counts* workers by degree that nothing changes; without a profile."""
    gpus = sum(degree * count for degree, count in counts.items())
    degrees = tuple(sorted(counts))
    told = " + ".join(f"{counts[degree]} x CP{degree}" for degree in degrees)
    return structs.replace(
        config,
        name="capacity",
        purpose=f"One load on {told}, in search of its capacity.",
        cluster=structs.replace(config.cluster, gpus=gpus, degrees=degrees, composition=dict(counts)),
        profile=None,
        policy=PaperPolicy(),
        controller=ManualController(),
        initial=GivenComposition(),
        arrival=POISSON,
    )


def executed_capacity(
    pool: RunConfig, profile: ModelProfile, live: LiveConfig, start: float, target: float, console: Console
) -> Capacity:
    """Return the capacity of *pool* (see `pool_of`) on this machine's ranks, looking from *start* on.

    Every trial is a run with a folder of its own. Raises what ended a run early.
    """
    from vertumnus.run.live import run_live  # here, so that a profile without executed trials starts sooner

    def trial(rate: float) -> Trial:
        at_rate = structs.replace(pool, profile=profile, arrival=pool.arrival.at_rate(rate))
        recorded = run_live(at_rate, live, Asked((f"arrival.rate={rate:g}",)), console)
        if recorded.failure is not None:
            raise recorded.failure
        log = read_log(recorded.run.log)
        folds = RunFolds(log.header)
        folds.apply(log.records)
        return judge(folds.requests, log.header.records, pool.cluster.gpus)

    busy = pool_rate(pool, profile, load_stream(pool))
    return find_capacity(trial, busy, start, EXECUTED_STEP, EXECUTED_TOLERANCE, target)


def judge(records: Sequence[RequestRecord], measurement: Measurement, gpus: int) -> Trial:
    """Return the trial on *gpus* GPUs that left *records*, in order of arrival; of its measured part."""
    measured = records[measurement.warmup_requests(len(records)) :]
    span_ns = measured[-1].arrival_ns - measured[0].arrival_ns
    if span_ns == 0:
        raise ConfigError("workload.requests: the measured requests arrive at once, a rate needs a span")
    service_ns = [r.predicted_service_ns for r in measured if r.predicted_service_ns is not None]
    mean_s = sum(service_ns) / len(service_ns) / SECOND
    rate = (len(measured) - 1) * SECOND / span_ns
    gpu_ns = sum(r.gpu_ns for r in measured if r.gpu_ns is not None)
    load = gpu_ns / (len(measured) * gpus * SECOND) * rate
    return Trial(mean_s * rate, summarise(records, measurement).slo_attainment, load)
