"""Requests a second of the simulator, with everything recorded and with nothing recorded."""

import io
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from msgspec import structs
from rich.console import Console

from vertumnus.config import RunConfig
from vertumnus.domain.codec import Body
from vertumnus.report.run_report import load_report
from vertumnus.run.asked import Asked
from vertumnus.run.pool import build_pool
from vertumnus.run.session import Recorded
from vertumnus.run.simulated import rare_collections, required_profile, simulate, simulated_requests
from vertumnus.run.stream import load_stream
from vertumnus.serving.loop import Loop
from vertumnus.sim.config import SimConfig
from vertumnus.sim.durations import Durations
from vertumnus.sim.engine import SimEngine
from vertumnus_profiling.bench.measure import Result, Settings, ratios, result
from vertumnus_profiling.bench.pools import simulated_config

TRACE_REQUESTS = 23_608
SEED = 0


def simulator(settings: Settings) -> Iterator[Result]:
    """The tool-agent trace on 12 workers of two degrees: the run's own figure, and without records."""
    requests = settings.size(TRACE_REQUESTS, 300)
    config = simulated_config(f"workload.requests={requests}", f"seed={SEED}")
    recorded, bare = [], []
    for _ in range(settings.repeats):
        recorded.append(own_figure(run_recorded(config, settings.scratch)))
        bare.append(_rate_without_records(config))
    yield result("simulator/recorded", "1/s", recorded, requests)
    yield result("simulator/unrecorded", "1/s", bare, requests)
    yield result("simulator/recorded_over_unrecorded", "x", ratios(recorded, bare), requests)


def run_recorded(config: RunConfig, runs_dir: Path) -> Recorded:
    """Run *config* below *runs_dir*; raises what ended the run early, if anything did."""
    assert isinstance(config.backend, SimConfig)
    quiet = Console(file=io.StringIO())
    recorded = simulate(structs.replace(config, runs_dir=str(runs_dir)), config.backend, Asked(), quiet)
    if recorded.failure is not None:
        raise recorded.failure
    return recorded


def own_figure(recorded: Recorded) -> float:
    """Return the requests a second that the run itself reports."""
    run = recorded.run
    return float(load_report(run.path.parent, run.run_id).run["sim_requests_per_s"])


def _rate_without_records(config: RunConfig) -> float:
    assert isinstance(config.backend, SimConfig)
    profile, stream = required_profile(config), load_stream(config)
    requests = simulated_requests(config, profile, stream)
    engine = SimEngine(Durations(profile, config.seed, config.backend.noise_sigma))
    pool = build_pool(config, profile, stream.block_tokens)
    loop = Loop(engine, pool.fleet, pool.control, _forget)
    with rare_collections():
        started = perf_counter()  # wall time, as in the run's own figure
        loop.serve(iter(requests))
        return len(requests) / (perf_counter() - started)


def _forget(source: int, body: Body) -> None:
    """Take a record and keep nothing."""
