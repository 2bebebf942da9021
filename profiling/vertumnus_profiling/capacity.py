"""kappa: the largest demand that one worker of a degree serves within target (sec. 6.1).

The load on a lone worker is raised until the target attainment breaks, then the break is closed in on.
Demand is what the controller counts: predicted seconds of the requests that arrive, as routed, per
second. A worker of a pool sees a thinned stream, in which the trace's ticks of simultaneous arrivals
are gone; so arrivals are Poisson.
"""

from collections.abc import Callable, Sequence
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
from vertumnus.records.timeline import Timeline
from vertumnus.run.asked import Asked
from vertumnus.run.capacity import MeanRequest, busy_rate
from vertumnus.run.pool import build_pool
from vertumnus.run.stream import Stream, load_stream
from vertumnus.serving.loop import Loop
from vertumnus.sim.config import SimConfig
from vertumnus.sim.durations import Durations
from vertumnus.sim.engine import SimEngine
from vertumnus.trace.arrivals import with_arrivals
from vertumnus.trace.blocks import to_requests
from vertumnus.trace.config import ArrivalConfig

TARGET = 0.9
"""Token-weighted attainment that a worker must keep."""
SIMULATED_REQUESTS = 2_000
"""Of the workload's window; fewer leave the attainment uncertain by more than the search resolves."""
SIMULATED_STEP, SIMULATED_TOLERANCE = 1.5, 0.02
"""Factor from load to load until the target breaks, and how closely the break is then found."""
EXECUTED_STEP, EXECUTED_TOLERANCE = 1.25, 0.1
"""The same where each load is a run on this machine's ranks."""
LEAST_LOAD, MOST_LOAD = 0.02, 8.0
"""Loads outside of this, as shares of a worker that is always busy, are not tried."""
POISSON = ArrivalConfig(process="poisson", rate=1.0)


class Trial(NamedTuple):
    """One load on one worker."""

    demand: float
    """Predicted seconds of work that arrived per second."""
    attainment: float | None
    """Token-weighted; None when no request had a target."""


class Capacity(NamedTuple):
    """What the trials on one degree found."""

    kappa: float | None
    """Demand of the highest load that met the target; None when none did, or all."""
    rate: float
    """Its arrival rate, or that of the last trial [req/s]."""
    attainment: float | None
    trials: int


def find_capacity(
    trial: Callable[[float], Trial],
    busy: float,
    start: float,
    step: float,
    tolerance: float,
    target: float = TARGET,
) -> Capacity:
    """Raise the rate from *start* by *step* until *target* breaks, then close in to within *tolerance*.

    *busy* is the rate that keeps the worker busy all the time; *start* is lowered while it fails.
    """
    tried: list[Trial] = []

    def at(rate: float) -> Trial:
        tried.append(trial(rate))
        return tried[-1]

    low, best, high = start, at(start), None
    while not _holds(best, target):
        low, high = low / step, low
        if low < LEAST_LOAD * busy:
            return Capacity(None, high, best.attainment, len(tried))
        best = at(low)
    while high is None:
        if low * step > MOST_LOAD * busy:
            return Capacity(None, low, best.attainment, len(tried))
        found = at(low * step)
        low, best, high = (low * step, found, None) if _holds(found, target) else (low, best, low * step)
    while high / low > 1 + tolerance:
        middle = (low * high) ** 0.5
        found = at(middle)
        low, best, high = (middle, found, high) if _holds(found, target) else (low, best, middle)
    return Capacity(best.demand, low, best.attainment, len(tried))


def _holds(trial: Trial, target: float) -> bool:
    return (trial.attainment or 0.0) >= target


def lone_worker(config: RunConfig, degree: int, arrival: ArrivalConfig = POISSON) -> RunConfig:
    """Return *config* with one worker of *degree* and nothing else; the profile is left out."""
    cluster = structs.replace(config.cluster, gpus=degree, degrees=(degree,), composition={degree: 1})
    return structs.replace(
        config,
        name=f"capacity_cp{degree}",
        purpose=f"One load on one worker of degree {degree}, in search of its capacity.",
        cluster=cluster,
        profile=None,
        policy=PaperPolicy(),
        controller=ManualController(),
        arrival=arrival,
    )


def simulated_stream(config: RunConfig) -> Stream:
    """Return the stream that simulated trials of *config* serve. Raises ConfigError as a run does."""
    longer = structs.replace(config.workload, requests=SIMULATED_REQUESTS)
    return load_stream(structs.replace(config, workload=longer))


def simulated_capacity(config: RunConfig, profile: ModelProfile, stream: Stream) -> Capacity:
    """Return the capacity of the worker of *config* (see `lone_worker`) in virtual time."""

    def trial(rate: float) -> Trial:
        return judge(simulated_records(config, profile, stream, rate), measurement_of(config))

    busy = busy_rate_of(config, profile, stream)
    return find_capacity(trial, busy, busy / 4, SIMULATED_STEP, SIMULATED_TOLERANCE)


def executed_capacity(
    config: RunConfig, profile: ModelProfile, live: LiveConfig, start: float, console: Console
) -> Capacity:
    """Return the capacity of the worker of *config* on this machine's ranks, looking from *start* on.

    Every trial is a run with a folder of its own. Raises what ended a run early.
    """
    from vertumnus.run.live import run_live  # here, so that a profile without executed trials starts sooner

    def trial(rate: float) -> Trial:
        at_rate = structs.replace(config, profile=profile, arrival=config.arrival.at_rate(rate))
        recorded = run_live(at_rate, live, Asked((f"arrival.rate={rate:g}",)), console)
        if recorded.failure is not None:
            raise recorded.failure
        log = read_log(recorded.run.log)
        folds = RunFolds(log.header)
        folds.apply(log.records)
        return judge(folds.requests, log.header.records)

    busy = busy_rate_of(config, profile, load_stream(config))
    return find_capacity(trial, busy, start, EXECUTED_STEP, EXECUTED_TOLERANCE)


def simulated_records(
    config: RunConfig, profile: ModelProfile, stream: Stream, rate: float
) -> list[RequestRecord]:
    """Serve *stream* at *rate* in virtual time and return its requests, in order of arrival."""
    rows = with_arrivals(stream.rows, config.arrival.at_rate(rate), config.seed)
    requests = to_requests(rows, stream.block_tokens, config.slo, config.workload.token_scale)
    noise = config.backend.noise_sigma if isinstance(config.backend, SimConfig) else SimConfig().noise_sigma
    timeline = Timeline(stream.block_tokens, live=False)

    def record(source: int, body: object) -> None:
        handle = timeline.handlers.get(type(body))
        if handle is not None:
            handle(body)

    pool = build_pool(config, profile, stream.block_tokens)
    engine = SimEngine(Durations(profile, config.seed, noise))
    Loop(engine, pool.fleet, pool.control, record).serve(iter(requests))
    return sorted(timeline.records, key=lambda record: record.request_id)


def judge(records: Sequence[RequestRecord], measurement: Measurement) -> Trial:
    """Return demand and attainment over the measured part of *records*, in order of arrival."""
    measured = records[measurement.warmup_requests(len(records)) :]
    span_ns = measured[-1].arrival_ns - measured[0].arrival_ns
    if span_ns == 0:
        raise ConfigError("workload.requests: the measured requests arrive at once, a rate needs a span")
    service_ns = [r.predicted_service_ns for r in measured if r.predicted_service_ns is not None]
    mean_s = sum(service_ns) / len(service_ns) / SECOND
    rate = (len(measured) - 1) * SECOND / span_ns
    return Trial(mean_s * rate, summarise(records, measurement).slo_attainment)


def busy_rate_of(config: RunConfig, profile: ModelProfile, stream: Stream) -> float:
    """Return the rate that keeps every worker of *config* busy all the time [req/s]."""
    requests = to_requests(stream.rows, stream.block_tokens)
    mean = MeanRequest.of(requests, stream.block_tokens)
    return busy_rate(mean, profile.prefill_time(), config.cluster.initial_composition())


def measurement_of(config: RunConfig) -> Measurement:
    """Return how trials of *config* are measured: all lengths in one bucket."""
    return Measurement.of(config.records, ())
